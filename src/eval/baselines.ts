// Baselines that a model has to beat, with exact ranks but without scoring every item:
//
//   popularity          how often an item occurs
//   first-order Markov  how often an item followed the last one; then popularity
//   recency             the user's own items, the newest first; then popularity
//
// They use the events before the evaluated part. Ties are ordered by a hash of the id (see byCount).

import { byCount } from './known-events.js';
import type { Successors } from './successors.js';

export interface Baseline {
  readonly name: string;
  /** 1-based rank of `target` in the catalogue without `excluded`; items + 1 if the target is excluded. `history`: oldest first. */
  rank(history: Int32Array, target: number, excluded: ReadonlySet<number>): number;
}

export class PopularityBaseline implements Baseline {
  readonly name = 'popularity';
  /** [V] popularity rank of each item, 0 the most popular. */
  readonly place: Int32Array;

  constructor(counts: Int32Array) {
    this.place = new Int32Array(counts.length);
    byCount(counts).forEach((item, place) => {
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

  /** Rank of a target after all of `first`, by popularity among the rest. */
  rankBehind(first: Iterable<number>, target: number, excluded: ReadonlySet<number>): number {
    let rank = this.rank(new Int32Array(0), target, excluded);
    for (const item of first) if (!excluded.has(item) && this.place[item]! > this.place[target]!) rank++;
    return rank;
  }
}

export class MarkovBaseline implements Baseline {
  readonly name = 'first-order Markov';
  readonly #popularity: PopularityBaseline;
  readonly #successors: Successors;

  constructor(popularity: PopularityBaseline, successors: Successors) {
    this.#popularity = popularity;
    this.#successors = successors;
  }

  rank(history: Int32Array, target: number, excluded: ReadonlySet<number>): number {
    if (excluded.has(target)) return this.#popularity.place.length + 1;
    const successors = this.#successors.items.subarray(...this.#successors.range(history.at(-1)));
    let rank = 1;
    for (const item of successors) {
      if (item === target) return rank;
      if (!excluded.has(item)) rank++;
    }
    return this.#popularity.rankBehind(successors, target, excluded);
  }
}

export class RecencyBaseline implements Baseline {
  readonly name = 'recency';
  readonly #popularity: PopularityBaseline;

  constructor(popularity: PopularityBaseline) {
    this.#popularity = popularity;
  }

  rank(history: Int32Array, target: number, excluded: ReadonlySet<number>): number {
    if (excluded.has(target)) return this.#popularity.place.length + 1;
    const own = new Set<number>();
    for (let i = history.length - 1; i >= 0; i--) {
      const item = history[i]!;
      if (item === target) return own.size + 1;
      if (!excluded.has(item)) own.add(item);
    }
    return this.#popularity.rankBehind(own, target, excluded);
  }
}
