// What a model has to beat: ranking by popularity, and by which item most often followed the last one (first-order
// Markov; items that never followed it come after, by popularity). Exact ranks, without a score for every item.
// Both learn from the events before the part that is evaluated: train for validation, train and validation for test.

import type { SequenceSource } from '../data/sequence-source.js';

export interface Baseline {
  readonly name: string;
  /** 1-based rank of `target` among the catalogue less `excluded`; items + 1 when the target is excluded. */
  rank(history: Int32Array, target: number, excluded: ReadonlySet<number>): number;
}

/** Ends of the events that may be learnt from when `part` is evaluated. */
function knownEnds(source: SequenceSource, part: 'validation' | 'test'): Int32Array {
  return part === 'validation' ? source.split.trainEnd : source.split.validationEnd;
}

function* histories(source: SequenceSource, part: 'validation' | 'test'): Generator<Int32Array> {
  const ends = knownEnds(source, part);
  const item = new Int32Array(ends.reduce((most, end) => Math.max(most, end), 0));
  for (let user = 0; user < source.users; user++) {
    source.read(user, 0, ends[user]!, { item }, 0);
    yield item.subarray(0, ends[user]);
  }
}

/** [V] events of each item before the evaluated part. */
export function countItems(source: SequenceSource, part: 'validation' | 'test'): Int32Array {
  const counts = new Int32Array(source.items);
  for (const history of histories(source, part)) for (const item of history) counts[item]!++;
  return counts;
}

export class PopularityBaseline implements Baseline {
  readonly name = 'popularity';
  /** [V] place of each item, 0 the most popular; ties by lower id. */
  readonly place: Int32Array;

  constructor(counts: Int32Array) {
    const order = Int32Array.from(counts.keys()).sort((a, b) => counts[b]! - counts[a]! || a - b);
    this.place = new Int32Array(counts.length);
    order.forEach((item, place) => {
      this.place[item] = place;
    });
  }

  rank(_history: Int32Array, target: number, excluded: ReadonlySet<number>): number {
    if (excluded.has(target)) return this.place.length + 1;
    const place = this.place[target]!;
    let before = place;
    for (const item of excluded) if (this.place[item]! < place) before--;
    return before + 1;
  }
}

export class MarkovBaseline implements Baseline {
  readonly name = 'first-order Markov';
  readonly #popularity: PopularityBaseline;
  /** By item: how often each other item came right after it. */
  readonly #followers: (Map<number, number> | undefined)[];

  constructor(source: SequenceSource, part: 'validation' | 'test') {
    this.#popularity = new PopularityBaseline(countItems(source, part));
    this.#followers = Array.from({ length: source.items });
    for (const history of histories(source, part)) {
      for (let i = 1; i < history.length; i++) {
        const followers = (this.#followers[history[i - 1]!] ??= new Map());
        followers.set(history[i]!, (followers.get(history[i]!) ?? 0) + 1);
      }
    }
  }

  rank(history: Int32Array, target: number, excluded: ReadonlySet<number>): number {
    const place = this.#popularity.place;
    if (excluded.has(target)) return place.length + 1;
    const followers = this.#followers[history.at(-1) ?? -1] ?? new Map<number, number>();
    const own = followers.get(target) ?? 0;
    let before = 0;
    let popularFollowers = 0;
    for (const [item, count] of followers) {
      if (excluded.has(item)) continue;
      if (count > own || (count === own && place[item]! < place[target]!)) before++;
      if (place[item]! < place[target]!) popularFollowers++;
    }
    if (own > 0) return before + 1;
    // Not a follower: behind all of them, then by popularity among the rest.
    return before + this.#popularity.rank(history, target, excluded) - popularFollowers;
  }
}
