// Translates items and histories of a request from original to dense ids; unknown items are refused or skipped.

import type { Sequence } from '../data/store/sequence-store.js';
import type { History } from '../eval/item-ranker.js';
import { UserError } from '../util/errors.js';
import type { Catalogue } from './catalogue.js';
import { presentMoment } from './moment.js';
import type { HistoryEvent, HistoryInput, RecommendOptions } from './recommend-request.js';

/** Placeholder for a missing time. */
const UNTIMED = -1;
/** Number of cached ids, about 100 bytes each. */
const MOST_IDS = 1_000_000;
/** Current times in nanoseconds exceed 2^53: they are rounded to 256 ns, which no time bucket distinguishes. */
const LATEST = 2 ** 62;

export class KnownItems {
  readonly #catalogue: Catalogue;
  #gap: number | undefined;
  readonly #ids = new Map<string | number, number>();

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
  }

  /** Number of items with an original id. */
  get count(): number {
    return this.#catalogue.vocabulary.size;
  }

  /** Dense id of an original; cached, since histories repeat items. */
  find(item: string | number): number | undefined {
    const known = this.#ids.get(item);
    if (known !== undefined) return known;
    const id = this.#catalogue.vocabulary.dense(item);
    if (id === undefined) return undefined;
    if (this.#ids.size >= MOST_IDS) this.#ids.clear();
    this.#ids.set(item, id);
    return id;
  }

  require(item: string | number): number {
    const id = this.find(item);
    if (id !== undefined) return id;
    throw new UserError(
      'unknown-item',
      `the model knows no item "${item}"`,
      'Leave it out of the history (in code, unknown: "skip" does).',
    );
  }

  /** A history in dense ids; undefined if no item is known. Runs for every request of a server: one pass, no copies. */
  history(history: HistoryInput, options: RecommendOptions): History | undefined {
    const items = new Int32Array(history.length);
    const times = new Float64Array(history.length);
    const actions = new Int32Array(history.length);
    let known = 0;
    let last: number | undefined;
    for (const given of history) {
      const event = eventOf(given);
      const id = options.unknown === 'skip' ? this.find(event.item) : this.require(event.item);
      if (id === undefined) continue;
      items[known] = id;
      times[known] = event.time === undefined ? UNTIMED : this.#checked(event.time);
      actions[known] = event.action ?? 0;
      last = event.time;
      known++;
    }
    if (known === 0) return undefined;
    const at = this.#checked(options.at ?? (last === undefined ? 0 : this.#now(last)));
    for (let i = 0; i < known; i++) if (times[i] === UNTIMED) times[i] = at; // it has just happened
    return {
      items: items.subarray(0, known),
      times: times.subarray(0, known),
      actions: actions.subarray(0, known),
      at,
    };
  }

  /** A history of the log, whose ids are already dense; undefined if empty. */
  logged({ items, times, actions }: Sequence, options: RecommendOptions): History | undefined {
    const last = times?.at(-1);
    if (items.length === 0) return undefined;
    const at = this.#checked(options.at ?? (last === undefined ? 0 : this.#now(last)));
    return {
      items,
      times: times ?? new Float64Array(items.length).fill(at),
      actions: actions ?? new Int32Array(items.length),
      at,
    };
  }

  #checked(time: number): number {
    if (time >= 0 && time < LATEST && Number.isInteger(time)) return time;
    const remedy = `Times are whole numbers in the unit of the log (${this.#catalogue.timeKind}), from 0 on.`;
    throw new UserError('bad-time', `${time} is not a time`, remedy);
  }

  #now(last: number): number {
    this.#gap ??= this.#catalogue.longestGap;
    return presentMoment(this.#catalogue.timeKind, last, this.#gap);
  }
}

/** Requests from plain JavaScript are not type-checked. */
function eventOf(given: HistoryInput[number] | null): HistoryEvent {
  const event = typeof given === 'object' ? given : { item: given };
  if (event && ['string', 'number'].includes(typeof event.item)) return event;
  throw new UserError(
    'bad-history',
    `a history contains ${JSON.stringify(given)}`,
    'Give each event as an item id, or as { item, time, action }.',
  );
}
