// Items and histories of a request, from the log's own ids to dense ones; what the model does not know is refused or skipped.

import type { History } from '../eval/item-ranker.js';
import { UserError } from '../util/errors.js';
import type { Catalogue } from './catalogue.js';
import { presentMoment } from './moment.js';
import type { HistoryInput, RecommendOptions } from './recommend-request.js';

/** Ids that are remembered, about 100 bytes each. */
const MOST_IDS = 1_000_000;
/** Nanoseconds of our days are above 2^53: they come rounded to 256 ns, which no time bucket tells apart. */
const LATEST = 2 ** 62;

export class KnownItems {
  readonly #catalogue: Catalogue;
  #gap: number | undefined;
  readonly #ids = new Map<string | number, number>();

  constructor(catalogue: Catalogue) {
    this.#catalogue = catalogue;
  }

  /** Items that have a name. */
  get count(): number {
    return this.#catalogue.vocabulary.size;
  }

  /** Dense id by the log's; remembered, since histories name the same items again and again. */
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

  /** In dense ids; undefined when nothing of it is known. */
  history(history: HistoryInput, options: RecommendOptions): History | undefined {
    const known = history.flatMap(given => {
      const event = typeof given === 'object' ? given : { item: given };
      const id = options.unknown === 'skip' ? this.find(event.item) : this.require(event.item);
      return id === undefined ? [] : [{ ...event, id }];
    });
    if (known.length === 0) return undefined;
    const last = known.at(-1)!.time;
    const at = options.at ?? (last === undefined ? 0 : this.#now(last)); // without times every event has just happened
    const times = Float64Array.from(known, event => event.time ?? at);
    const wrong = [...times, at].find(time => !(time >= 0 && time < LATEST && Number.isInteger(time)));
    if (wrong !== undefined) {
      const remedy = `Times are whole numbers in the unit of the log (${this.#catalogue.timeKind}), from 0 on.`;
      throw new UserError('bad-time', `${wrong} is no time`, remedy);
    }
    return {
      items: Int32Array.from(known, event => event.id),
      times,
      actions: Int32Array.from(known, event => event.action ?? 0),
      at,
    };
  }

  #now(last: number): number {
    this.#gap ??= this.#catalogue.longestGap;
    return presentMoment(this.#catalogue.timeKind, last, this.#gap);
  }
}
