// Predictions of the next event from the log without a model, as features of items (features.ts) and as components of a mixture
// (mixture.ts). Both use the same sources as the baselines: popularity, successors, and the user's earlier items.
//
// V items, F sparse features, K sparse components.

import type { SequenceSource } from '../../data/sequence-source.js';
import { PopularityBaseline } from '../baselines.js';
import { type Ahead, countItems, countRecentItems } from '../known-events.js';
import { Successors } from '../successors.js';
import { SPARSE_COMPONENTS, SPARSE_FEATURES } from '../../config/prior-weights.js';
import { SparseFeatures } from './features.js';

const F = SPARSE_FEATURES.length;
const K = SPARSE_COMPONENTS.length;
const [OWN, AGE, COUNT, LAST, SUCCESSOR, SHARE, CONTEXT, OWN_SUCCESSOR, NEAR] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
/** History positions of each successor component: up to this one, starting after the previous component's. */
const SUCCESSOR_PLACES = [1, 2, 3, 5, 10, 20];
const NEAR_PLACES = [1, 2, 6, 12];
const OWN_PARTS = SUCCESSOR_PLACES.length + NEAR_PLACES.length;
const TOP_SUCCESSORS = SPARSE_COMPONENTS.indexOf('topSuccessors');

/** Limits on a user's newest distinct items, and on an item's most frequent successors, that get features. */
const MOST_OWN = 300;
const MOST_SUCCESSORS = 150;
/** Number of items before the last one whose successors get features, successors of each, and of still earlier items. */
const CONTEXT_ITEMS = 5;
const MOST_CONTEXT = 40;
const MOST_BEFORE = 10;
const MOST_NEAR_PAIRS = 2e7;
/** Share of the events that counts as recent. */
const RECENT = 0.1;

export class LogPriors {
  readonly popularity: PopularityBaseline;
  readonly successors: Successors;
  /** Items two to five events later. */
  readonly #near: Successors;
  /** [V] known events of each item. */
  readonly counts: Int32Array;
  /** [V] logarithms of the counts, and of the recent ones. */
  readonly popularities: readonly Float32Array[];
  /** [V] probabilities under each dense component. */
  readonly distributions: readonly Float64Array[];

  constructor(source: SequenceSource, ahead: Ahead) {
    this.counts = countItems(source, ahead);
    this.popularity = new PopularityBaseline(this.counts);
    const { place } = this.popularity;
    this.successors = new Successors(source, ahead, { place });
    this.#near = new Successors(source, ahead, { place, distances: [2, 5], mostPairs: MOST_NEAR_PAIRS });
    const recent = countRecentItems(source, ahead, RECENT) ?? new Int32Array(source.items);
    this.popularities = [this.counts, recent].map(counts => Float32Array.from(counts, count => Math.log1p(count)));
    const uniform = new Int32Array(source.items).fill(1);
    this.distributions = [this.counts, recent, uniform].map(distribution);
  }

  /** `history`: known items, oldest first. */
  sparse(history: Int32Array): SparseFeatures {
    const found = new SparseFeatures();
    this.#addOwn(history, found);
    this.#addSuccessors(history, found);
    return found;
  }

  #addOwn(history: Int32Array, found: SparseFeatures): void {
    const { values, parts } = found;
    const last = history.at(-1);
    let different = 0;
    let followed = 0;
    for (let i = history.length - 1; i >= 0; i--) {
      const item = history[i]!;
      let row = found.find(item);
      if (row === undefined) {
        if (different === MOST_OWN) continue;
        row = found.row(item);
        values[row * F + OWN] = 1;
        values[row * F + AGE] = -Math.log(++different);
      }
      values[row * F + COUNT]!++;
      if (item === last && i + 1 < history.length) {
        followed++;
        const next = found.find(history[i + 1]!);
        if (next !== undefined) values[next * F + OWN_SUCCESSOR]!++;
      }
    }
    let harmonic = 0;
    for (let age = 1; age <= different; age++) harmonic += 1 / age;
    for (let row = 0; row < different; row++) {
      const [count, next] = [values[row * F + COUNT]!, values[row * F + OWN_SUCCESSOR]!];
      values[row * F + COUNT] = Math.log(count);
      values[row * F + OWN_SUCCESSOR] = Math.log1p(next);
      parts[row * K + OWN_PARTS] = 1 / ((row + 1) * harmonic);
      parts[row * K + OWN_PARTS + 1] = count / history.length;
      parts[row * K + OWN_PARTS + 2] = next / Math.max(1, followed);
    }
    if (last !== undefined) values[found.row(last) * F + LAST] = 1;
  }

  #addSuccessors(history: Int32Array, found: SparseFeatures): void {
    const { values, parts } = found;
    eachPlace(SUCCESSOR_PLACES, (back, component, share) => {
      const most = back === 1 ? MOST_SUCCESSORS : back <= CONTEXT_ITEMS + 1 ? MOST_CONTEXT : MOST_BEFORE;
      each(this.successors, { item: history.at(-back), most }, (item, count, p) => {
        const row = found.row(item);
        parts[row * K + component]! += share * p;
        if (back === 1) {
          values[row * F + SUCCESSOR] = Math.log1p(count);
          values[row * F + SHARE] = Math.log1p(100 * p);
        } else if (back <= CONTEXT_ITEMS + 1) values[row * F + CONTEXT]! += p / back;
      });
    });
    const following = { item: history.at(-1), most: MOST_SUCCESSORS };
    let total = 0;
    each(this.successors, following, (_item, _count, p) => {
      total += fourth(p);
    });
    each(this.successors, following, (item, _count, p) => {
      parts[found.row(item) * K + TOP_SUCCESSORS] = fourth(p) / total;
    });
    eachPlace(NEAR_PLACES, (back, component, share) => {
      const most = back <= CONTEXT_ITEMS + 1 ? MOST_CONTEXT : MOST_BEFORE;
      each(this.#near, { item: history.at(-back), most }, (item, _count, p) => {
        const row = found.row(item);
        parts[row * K + SUCCESSOR_PLACES.length + component]! += share * p;
        if (back <= CONTEXT_ITEMS + 1) values[row * F + NEAR]! += p;
      });
    });
    for (let at = 0; at < values.length; at += F) {
      for (const f of [CONTEXT, NEAR]) values[at + f] = Math.log1p(100 * values[at + f]!);
    }
  }
}

/** Calls `take` for every history position with its component and its share of it. */
function eachPlace(oldest: readonly number[], take: (back: number, component: number, share: number) => void): void {
  oldest.forEach((to, component) => {
    const from = oldest[component - 1] ?? 0;
    for (let back = from + 1; back <= to; back++) take(back, component, 1 / (to - from));
  });
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

function fourth(x: number): number {
  return x * x * (x * x);
}

function distribution(counts: Int32Array): Float64Array {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return Float64Array.from(counts, count => count / Math.max(1, total));
}
