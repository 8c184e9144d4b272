// What the log knows of a next event without a model, as features of items. Three kinds, after the three baselines:
//
//   item features   of every item, whoever asks: how popular it is, and was lately
//   own items       of a user's earlier items: how long ago (counted in different items), how often, right now
//   successors      of items that followed the last ones: at once or soon, in everybody's history or in this user's own
//
// The last two are sparse: all items that are not listed have zeros there. A linear function of these features is added
// to the model's logits; fit-weights.ts finds it.
//
// V items, F sparse features.

import type { SequenceSource } from '../../data/sequence-source.js';
import { PopularityBaseline } from '../baselines.js';
import { type Ahead, countItems, countRecentItems } from '../known-events.js';
import { Successors } from '../successors.js';

export const ITEM_FEATURES = ['popularity', 'recentPopularity'] as const;
export const SPARSE_FEATURES = [
  'own',
  'ownAge',
  'ownCount',
  'last',
  'successor',
  'successorShare',
  'context',
  'ownSuccessor',
  'near',
] as const;
const F = SPARSE_FEATURES.length;
const [OWN, AGE, COUNT, LAST, SUCCESSOR, SHARE, CONTEXT, OWN_SUCCESSOR, NEAR] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;

/** How many of a user's newest different items, and of an item's most frequent successors, get features. */
const MOST_OWN = 300;
const MOST_SUCCESSORS = 150;
/** Items before the last one whose successors count too, and how many of each. */
const CONTEXT_ITEMS = 5;
const MOST_CONTEXT = 40;
const MOST_NEAR_PAIRS = 2e7;
/** Share of the events that is recent. */
const RECENT = 0.1;

/** Sparse features of one case. */
export interface SparseFeatures {
  /** [n] different items. */
  readonly items: number[];
  /** [n * F] */
  readonly values: number[];
}

export class LogPriors {
  readonly popularity: PopularityBaseline;
  readonly successors: Successors;
  /** Items two to five events later. */
  readonly #near: Successors;
  /** [V] known events of each item. */
  readonly counts: Int32Array;
  /** [V] of each item feature. */
  readonly itemFeatures: readonly Float32Array[];

  constructor(source: SequenceSource, ahead: Ahead) {
    this.counts = countItems(source, ahead);
    this.popularity = new PopularityBaseline(this.counts);
    const { place } = this.popularity;
    this.successors = new Successors(source, ahead, { place });
    this.#near = new Successors(source, ahead, { place, distances: [2, 5], mostPairs: MOST_NEAR_PAIRS });
    const recent = countRecentItems(source, ahead, RECENT) ?? new Int32Array(source.items);
    this.itemFeatures = [this.counts, recent].map(counts => Float32Array.from(counts, count => Math.log1p(count)));
  }

  /** `history`: known items, oldest first. */
  sparse(history: Int32Array): SparseFeatures {
    const list = new FeatureList();
    this.#addOwn(history, list);
    this.#addSuccessors(history, list);
    return list;
  }

  #addOwn(history: Int32Array, list: FeatureList): void {
    let different = 0;
    const last = history.at(-1);
    for (let i = history.length - 1; i >= 0; i--) {
      const item = history[i]!;
      let at = list.find(item);
      if (at === undefined) {
        if (different === MOST_OWN) continue;
        at = list.place(item);
        list.values[at + OWN] = 1;
        list.values[at + AGE] = -Math.log(++different);
      }
      list.values[at + COUNT]!++;
      if (item === last && i + 1 < history.length) {
        const next = list.find(history[i + 1]!);
        if (next !== undefined) list.values[next + OWN_SUCCESSOR]!++;
      }
    }
    for (let at = 0; at < list.values.length; at += F) {
      list.values[at + COUNT] = Math.log(list.values[at + COUNT]!);
      list.values[at + OWN_SUCCESSOR] = Math.log1p(list.values[at + OWN_SUCCESSOR]!);
    }
    if (last !== undefined) list.values[list.place(last) + LAST] = 1;
  }

  #addSuccessors(history: Int32Array, list: FeatureList): void {
    each(this.successors, { item: history.at(-1), most: MOST_SUCCESSORS }, (item, count, share) => {
      const at = list.place(item);
      list.values[at + SUCCESSOR] = Math.log1p(count);
      list.values[at + SHARE] = Math.log1p(100 * share);
    });
    for (let back = 1; back <= CONTEXT_ITEMS + 1; back++) {
      const item = history.at(-back);
      if (back > 1) {
        each(this.successors, { item, most: MOST_CONTEXT }, (next, _count, share) => {
          list.values[list.place(next) + CONTEXT]! += share / back;
        });
      }
      each(this.#near, { item, most: MOST_CONTEXT }, (next, _count, share) => {
        list.values[list.place(next) + NEAR]! += share;
      });
    }
    for (let at = 0; at < list.values.length; at += F) {
      for (const f of [CONTEXT, NEAR]) list.values[at + f] = Math.log1p(100 * list.values[at + f]!);
    }
  }
}

/** The most frequent successors of an item, with their counts and their shares of all. */
function each(
  successors: Successors,
  { item, most }: { item: number | undefined; most: number },
  take: (item: number, count: number, share: number) => void,
): void {
  const { items, counts, totals } = successors;
  const [from, to] = successors.range(item);
  for (let e = from; e < Math.min(to, from + most); e++) take(items[e]!, counts[e]!, counts[e]! / totals[item!]!);
}

class FeatureList implements SparseFeatures {
  readonly items: number[] = [];
  readonly values: number[] = [];
  readonly #at = new Map<number, number>();

  /** Where the features of an item begin in `values`, if it has any. */
  find(item: number): number | undefined {
    return this.#at.get(item);
  }

  place(item: number): number {
    let at = this.#at.get(item);
    if (at === undefined) {
      at = this.values.length;
      this.#at.set(item, at);
      this.items.push(item);
      for (let f = 0; f < F; f++) this.values.push(0);
    }
    return at;
  }
}
