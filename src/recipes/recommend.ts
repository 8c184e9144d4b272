// Recommendations from a trained run, in process: histories and answers are in the log's own ids.

import { type RankedItem, recommendItems } from '../eval/recommend-items.js';
import { UserError } from '../util/errors.js';
import { OpenRun, type OpenRunOptions } from './open-run.js';

/** An event of a history; the time is in the unit of the log, and may be left out when the model uses none. */
export interface HistoryEvent {
  item: string | number;
  time?: number;
  action?: number;
}

export interface RecommendOptions {
  /** How many items (10 unless given). */
  k?: number;
  /** `history` leaves out what the user has already had (the default); `none` does not. */
  exclude?: 'history' | 'none';
  /** The moment to recommend for; that of the last event unless given. */
  at?: number;
  /** What to do with items the model does not know: refuse (the default), or leave them out of the history. */
  unknown?: 'refuse' | 'skip';
}

export interface Recommendation {
  /** Item id as in the log. */
  item: string;
  /** Higher is better; comparable within one answer only. */
  score: number;
}

export class Recommender {
  readonly #run: OpenRun;

  constructor(run: OpenRun) {
    this.#run = run;
  }

  /** The best next items for a history, oldest event first. An empty history has no answer. */
  async recommend(
    history: readonly (string | number | HistoryEvent)[],
    options: RecommendOptions = {},
  ): Promise<Recommendation[]> {
    const { source, model, config } = this.#run;
    const { k = 10 } = options;
    if (!Number.isInteger(k) || k < 1) throw new UserError('bad-count', `k is ${k}`, 'Ask for at least one item.');
    const events = history.map(event => (typeof event === 'object' ? event : { item: event }));
    const known = events.flatMap(event => {
      const id = source.itemId(event.item);
      if (id !== undefined) return [{ ...event, id }];
      if (options.unknown === 'skip') return [];
      throw new UserError(
        'unknown-item',
        `the model knows no item "${event.item}"`,
        'Leave it out of the history (in code, unknown: "skip" does).',
      );
    });
    if (known.length === 0) {
      throw new UserError('empty-history', 'the history holds no known item', 'Give at least one item of the log.');
    }
    // Without times every event counts as having just happened.
    const last = options.at ?? known.at(-1)!.time ?? 0;
    const past = {
      items: Int32Array.from(known, event => event.id),
      times: Float64Array.from(known, event => event.time ?? last),
      actions: Int32Array.from(known, event => event.action ?? 0),
      at: last,
    };
    const ranked = await recommendItems(model, past, {
      k,
      excludeHistory: (options.exclude ?? 'history') === 'history',
      named: source.itemVocabulary.size,
      normalizeItem: config.loss.normalizeItem,
    });
    return ranked.map(({ item, score }: RankedItem) => ({ item: source.originalItem(item), score }));
  }

  /** A user's whole history in the log, by the log's user id. */
  historyOf(user: string | number): HistoryEvent[] {
    const { source } = this.#run;
    const id = source.userId(user);
    if (id === undefined) {
      throw new UserError(
        'unknown-user',
        `the log has no user "${user}"`,
        'Give a history instead: new users need no id.',
      );
    }
    const { items, times, actions } = source.sequence(id);
    return Array.from(items, (item, i) => ({
      item: source.originalItem(item),
      ...(times && { time: times[i]! }),
      ...(actions && { action: actions[i]! }),
    }));
  }

  [Symbol.dispose](): void {
    this.#run[Symbol.dispose]();
  }
}

/** Opens the run in a folder for recommending. */
export function openRecommender(path: string, options: OpenRunOptions = {}): Recommender {
  return new Recommender(new OpenRun(path, options));
}
