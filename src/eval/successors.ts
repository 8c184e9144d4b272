// First-order transition counts of a log, in three arrays.
//
// V items, P distinct pairs.

import type { SequenceSource } from '../data/sequence-source.js';
import { type Ahead, knownHistories } from './known-events.js';

export interface SuccessorOptions {
  /** [V] tie-break for equal counts, lower first. */
  place: Int32Array;
  /** Range of distances of successors, in events (default [1, 1]). */
  distances?: readonly [number, number];
  /** Above this many pairs, only a share of the users is counted. */
  mostPairs?: number;
}

export class Successors {
  /** [V + 1] the successors of item i are entries starts[i] .. starts[i + 1] - 1, the most frequent first. */
  readonly starts: Float64Array;
  /** [P] */
  readonly items: Int32Array;
  /** [P] */
  readonly counts: Int32Array;
  /** [V] how often each item was followed by any. */
  readonly totals: Int32Array;

  constructor(source: SequenceSource, ahead: Ahead, { place, ...which }: SuccessorOptions) {
    const { items: V } = source;
    const pairs = sortedPairs(source, ahead, which);
    this.starts = new Float64Array(V + 1);
    this.totals = new Int32Array(V);
    const itemAt = new Int32Array(V);
    place.forEach((at, item) => {
      itemAt[at] = item;
    });
    const items: Int32Array = new Int32Array(pairs.length);
    const counts: Int32Array = new Int32Array(pairs.length);
    const row = new Float64Array(V); // of one item: count and tie-break in one sortable number
    let size = 0;
    for (let i = 0, before = 0; before < V; before++) {
      let width = 0;
      while (i < pairs.length && pairs[i]! < (before + 1) * V) {
        const pair = pairs[i]!;
        const from = i;
        while (pairs[i] === pair) i++;
        row[width++] = place[pair - before * V]! - (i - from) * V;
        this.totals[before]! += i - from;
      }
      for (const packed of row.subarray(0, width).sort()) {
        counts[size] = Math.ceil(-packed / V);
        items[size] = itemAt[packed + counts[size]! * V]!;
        size++;
      }
      this.starts[before + 1] = size;
    }
    this.items = items.slice(0, size);
    this.counts = counts.slice(0, size);
  }

  /** Range of an item's successors; empty for undefined. */
  range(item: number | undefined): [from: number, to: number] {
    return item === undefined ? [0, 0] : [this.starts[item]!, this.starts[item + 1]!];
  }
}

/** Pairs of items at these distances as before * V + after, sorted: exact below V = 94 million. */
function sortedPairs(
  source: SequenceSource,
  ahead: Ahead,
  { distances = [1, 1], mostPairs = Number.POSITIVE_INFINITY }: Omit<SuccessorOptions, 'place'>,
): Float64Array {
  const [nearest, farthest] = distances;
  const pairsOf = (length: number) => {
    let sum = 0;
    for (let d = nearest; d <= farthest; d++) sum += Math.max(0, length - d);
    return sum;
  };
  const sizes = Array.from(knownHistories(source, ahead), history => pairsOf(history.length));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const stride = Math.max(1, Math.ceil(total / mostPairs));
  const pairs = new Float64Array(sizes.reduce((sum, size, user) => sum + (user % stride === 0 ? size : 0), 0));
  let [at, user] = [0, 0];
  for (const history of knownHistories(source, ahead)) {
    if (user++ % stride !== 0) continue;
    for (let i = nearest; i < history.length; i++) {
      for (let d = nearest; d <= Math.min(i, farthest); d++) pairs[at++] = history[i - d]! * source.items + history[i]!;
    }
  }
  return pairs.sort();
}
