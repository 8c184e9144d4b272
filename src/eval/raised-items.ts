// Items with a higher score than their row gives, for each query of a group: this rank's ones, scored in double precision.
//
// Q queries, W width, V items.

import type { RowShard } from '../util/row-shard.js';
import { concatLists, listAt, type Lists } from './lists.js';
import { listOf, rankBest, type RankedLists } from './merge-best.js';

/** Additions to the scores of some items. */
export interface Raised {
  /** Distinct ids for each query. */
  readonly items: Lists;
  /** The addition for each item, in the order of the lists. */
  readonly added: Float64Array;
}

interface HostRows {
  /** [V, W], or this rank's rows. */
  readonly host: Float32Array;
  readonly width: number;
  readonly shard: RowShard;
}

export class RaisedItems {
  readonly #rows: HostRows;
  /** [Q, W] */
  readonly #queries: Float32Array;
  /** This rank's raised items, as ids. */
  readonly #items: Lists;
  /** For each of them: the addition, and the total score. */
  readonly #added: Float64Array;
  readonly #scores: Float64Array;

  constructor(rows: HostRows, queries: Float32Array, parts: readonly Raised[]) {
    this.#rows = rows;
    this.#queries = queries;
    const { index, count } = rows.shard;
    const all = concatLists(parts.map(({ items }) => items));
    const offsets = new Int32Array(all.offsets.length);
    const ids = new Int32Array(all.ids.length);
    this.#added = new Float64Array(all.ids.length);
    this.#scores = new Float64Array(all.ids.length);
    const added = parts.flatMap(part => Array.from(part.added));
    let at = 0;
    for (let q = 0; q + 1 < offsets.length; q++) {
      for (let i = all.offsets[q]!; i < all.offsets[q + 1]!; i++) {
        const id = all.ids[i]!;
        if (id % count !== index) continue;
        ids[at] = id;
        this.#added[at] = added[i]!;
        this.#scores[at++] = this.dot(q, id) + added[i]!;
      }
      offsets[q + 1] = at;
    }
    this.#items = { ids: ids.subarray(0, at), offsets };
  }

  /** Score of a local item by its row alone. */
  dot(q: number, item: number): number {
    const { host, width, shard } = this.#rows;
    const row = ((item - shard.index) / shard.count) * width;
    let sum = 0;
    for (let d = 0; d < width; d++) sum += this.#queries[q * width + d]! * host[row + d]!;
    return sum;
  }

  /** Score of a local item, and the addition in it. */
  score(q: number, item: number): { score: number; added: number } {
    const at = listAt(this.#items, q).indexOf(item);
    if (at < 0) return { added: 0, score: this.dot(q, item) };
    const i = this.#items.offsets[q]! + at;
    return { added: this.#added[i]!, score: this.#scores[i]! };
  }

  /** Rows to exclude from the scan: `left`, and the raised items. */
  without(left: Lists): Lists {
    const { index, count } = this.#rows.shard;
    const { ids: raised, offsets: starts } = this.#items;
    const ids = new Int32Array(left.ids.length + raised.length);
    const offsets = left.offsets.map((offset, q) => offset + starts[q]!);
    for (let q = 0; q + 1 < offsets.length; q++) {
      let at = offsets[q]!;
      for (const row of listAt(left, q)) ids[at++] = row;
      for (const id of listAt(this.#items, q)) ids[at++] = (id - index) / count;
    }
    return { ids, offsets };
  }

  /** Adds to counts[q] the raised items that beat bars[q], or tie with it and have a lower id. */
  countAhead(
    counts: Int32Array,
    { targets, bars, left }: { targets: Int32Array; bars: Float64Array; left: Lists },
  ): void {
    counts.forEach((_, q) => {
      const [target, bar] = [targets[q]!, bars[q]!];
      this.#each(q, left, (item, score) => {
        if (score > bar || (score === bar && item < target)) counts[q]!++;
      });
    });
  }

  /** The lists of a scan with the raised items in them. */
  merge(scanned: RankedLists, { k, left }: { k: number; left: Lists }): RankedLists {
    const cases = Array.from({ length: left.offsets.length - 1 }, (_, q) => {
      const candidates = listOf(scanned, q, k);
      this.#each(q, left, (item, score) => candidates.push({ item, score }));
      return candidates;
    });
    return rankBest(cases, k);
  }

  /** The raised items of a query that are not excluded. */
  #each(q: number, left: Lists, take: (item: number, score: number) => void): void {
    const { index, count } = this.#rows.shard;
    const out = new Set(listAt(left, q));
    const { ids, offsets } = this.#items;
    for (let i = offsets[q]!; i < offsets[q + 1]!; i++) {
      if (!out.has((ids[i]! - index) / count)) take(ids[i]!, this.#scores[i]!);
    }
  }
}
