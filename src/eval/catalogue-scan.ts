// Scores all items for the queries of a group's ranks: exact ranks, top items, log-probabilities. Queries go to all ranks of the
// group, each scores its own rows, and results are combined without rounding: counts and fixed-point sums as integers, lists
// by merging. A score is one chain of multiply-adds over a row, on any rank, so results equal those of a single rank bit for
// bit.
//
// Some items may have a higher score than their row gives (`raised`): these are excluded from the scan, scored by the row's
// owner in double precision, and merged.
//
// Q queries of all ranks, C of this one, W width, V items, k list length.

import type { Communicator } from '../dist/comm/communicator.js';
import { gatherColumns } from '../dist/comm/gather-columns.js';
import type { Device } from '../native/device.js';
import { countAhead } from '../ops/count-ahead.js';
import { expSum } from '../ops/exp-sum.js';
import { targetScores } from '../ops/target-scores.js';
import { topK } from '../ops/top-k.js';
import type { Tensor } from '../tensor/tensor.js';
import { concatLists, emptyLists, joined, listAt, type Lists, ownLists, UploadedLists } from './lists.js';
import type { ItemPlace } from './item-place.js';
import { mergeBest, type RankedLists } from './merge-best.js';
import { RaisedItems, type Raised } from './raised-items.js';

export interface CatalogueRows extends ItemPlace {
  readonly device: Device;
  /** [V, W], or this rank's rows. */
  readonly table: Tensor<'f32'>;
  /** The same on the host, for scores in double precision. */
  readonly host?: Float32Array;
  /** V. */
  readonly items: number;
}

export interface Queries {
  /** [C, W] */
  readonly queries: Float32Array;
  readonly raised?: Raised;
}

export class CatalogueScan {
  readonly #rows: CatalogueRows;
  readonly #group: Communicator;
  /** [Q, W] */
  readonly #queries: Tensor<'f32'>;
  /** Number of queries before this rank's, of this rank, and in total. */
  readonly #before: number;
  readonly #own: number;
  readonly #all: number;
  readonly #raised: RaisedItems | undefined;

  private constructor(rows: CatalogueRows, parts: readonly Queries[]) {
    const width = rows.table.cols;
    const counts = parts.map(({ queries }) => queries.length / width);
    const sum = (of: readonly number[]) => of.reduce((total, count) => total + count, 0);
    this.#rows = rows;
    this.#group = rows.group;
    this.#before = sum(counts.slice(0, rows.group.rank));
    this.#own = counts[rows.group.rank]!;
    this.#all = sum(counts);
    const queries = new Float32Array(this.#all * width);
    let at = 0;
    for (const part of parts) {
      queries.set(part.queries, at);
      at += part.queries.length;
    }
    this.#queries = rows.device.from(queries, [this.#all, width]);
    if (rows.host) {
      const raised = parts.map(part => part.raised!);
      this.#raised = new RaisedItems({ ...rows, width, host: rows.host }, queries, raised);
    }
  }

  /** Collective over the group, as are all methods. */
  static async begin(rows: CatalogueRows, own: Queries): Promise<CatalogueScan> {
    const { ids, offsets } = own.raised?.items ?? emptyLists(own.queries.length / rows.table.cols);
    const added = own.raised?.added ?? new Float64Array(0);
    const parts = await gatherColumns(rows.group, { queries: own.queries, ids, offsets, added });
    return new CatalogueScan(
      rows,
      parts.map(part => ({ queries: part.queries, raised: { items: part, added: part.added } })),
    );
  }

  [Symbol.dispose](): void {
    this.#queries.dispose();
  }

  /** [C] exact 1-based ranks of the targets; ties go to the lower id. V + 1 for an excluded target. */
  async ranks(own: Int32Array, excluded: Lists): Promise<Int32Array> {
    const { device, table, shard, items } = this.#rows;
    const parts = await gatherColumns(this.#group, { targets: own, ids: excluded.ids, offsets: excluded.offsets });
    const targets = joined(parts.map(part => part.targets));
    const left = ownLists(concatLists(parts), shard);
    const { bars, fine } = await this.#bars(targets);
    const places = targets.map(target => Math.ceil((target - shard.index) / shard.count));
    using bar = device.from(bars);
    using place = device.from(places);
    using out = new UploadedLists(device, this.#raised?.without(left) ?? left);
    using found = countAhead(device, this.#queries, table, { bars: bar, places: place, excluded: out });
    const counts = await device.read(found);
    this.#raised?.countAhead(counts, { targets, bars: fine, left });
    const all = await gatherColumns(this.#group, { counts });
    return own.map((target, c) => {
      if (listAt(excluded, c).includes(target)) return items + 1;
      return all.reduce((rank, part) => rank + part.counts[this.#before + c]!, 1);
    });
  }

  /** The k best items of each case with their scores, best first; -1 and -Infinity where fewer are left. */
  async best(k: number, excluded: Lists = emptyLists(this.#own)): Promise<RankedLists> {
    const { device, table, shard } = this.#rows;
    const left = ownLists(concatLists(await gatherColumns(this.#group, { ...excluded })), shard);
    using out = new UploadedLists(device, this.#raised?.without(left) ?? left);
    const top = topK(device, this.#queries, table, { k, excluded: out });
    const [ids, scores] = await Promise.all([device.read(top.ids), device.read(top.scores)]);
    top.ids.dispose();
    top.scores.dispose();
    const here: RankedLists = {
      ids: ids.map(row => (row < 0 ? -1 : row * shard.count + shard.index)),
      scores: Float64Array.from(scores),
    };
    const merged = this.#raised?.merge(here, { k, left }) ?? here;
    const all = await gatherColumns(this.#group, { ...merged });
    const [from, to] = [this.#before * k, (this.#before + this.#own) * k];
    return mergeBest(
      all.map(part => ({ ids: part.ids.subarray(from, to), scores: part.scores.subarray(from, to) })),
      k,
    );
  }

  /** Scores of listed items by their rows alone, in double precision, in the order of the lists. */
  async scores(lists: Lists): Promise<Float64Array> {
    const { count, index } = this.#rows.shard;
    const asked = concatLists(await gatherColumns(this.#group, { ...lists }));
    const found = new Float64Array(asked.ids.length);
    for (let q = 0; q < this.#all; q++) {
      for (let i = asked.offsets[q]!; i < asked.offsets[q + 1]!; i++) {
        if (asked.ids[i]! % count === index) found[i] = this.#raised!.dot(q, asked.ids[i]!);
      }
    }
    const all = await gatherColumns(this.#group, { found });
    const from = asked.offsets[this.#before]!;
    return Float64Array.from(lists.ids, (id, i) => all[id % count]!.found[from + i]!);
  }

  /** [C] log of each target's probability under the softmax of all scores. */
  async logProbabilities(own: Int32Array): Promise<Float64Array> {
    const { device, table, items } = this.#rows;
    const targets = joined((await gatherColumns(this.#group, { own })).map(part => part.own));
    const { bars: scores } = await this.#bars(targets);
    const top = topK(device, this.#queries, table, { k: 1 });
    const most = await gatherColumns(this.#group, { scores: await device.read(top.scores) });
    top.ids.dispose();
    top.scores.dispose();
    const bars = Float32Array.from(targets, (_, q) => Math.max(...most.map(part => part.scores[q]!)));
    const bits = 62 - Math.ceil(Math.log2(items + 1));
    using bar = device.from(bars);
    using sum = expSum(device, this.#queries, table, { bars: bar, bits });
    const sums = await gatherColumns(this.#group, { sums: await device.read(sum) });
    return Float64Array.from(own, (_, c) => {
      const q = this.#before + c;
      const total = sums.reduce((so, part) => so + part.sums[q]!, 0n);
      return scores[q]! - bars[q]! - (Math.log(Number(total)) - bits * Math.LN2);
    });
  }

  /** [Q] scores of the targets, in single and, with raised items, in double precision. */
  async #bars(targets: Int32Array): Promise<{ bars: Float32Array; fine: Float64Array }> {
    const { device, table, shard } = this.#rows;
    const isHere = (target: number) => target % shard.count === shard.index;
    using rows = device.from(targets.map(id => (isHere(id) ? (id - shard.index) / shard.count : -1)));
    using scores = targetScores(device, this.#queries, table, rows);
    const bars = await device.read(scores);
    const fine = new Float64Array(this.#raised ? targets.length : 0);
    targets.forEach((target, q) => {
      if (!this.#raised || !isHere(target)) return;
      const { score, added } = this.#raised.score(q, target);
      bars[q]! += Math.fround(added);
      fine[q] = score;
    });
    const all = await gatherColumns(this.#group, { bars, fine });
    return {
      bars: bars.map((_, q) => all[targets[q]! % shard.count]!.bars[q]!),
      fine: fine.map((_, q) => all[targets[q]! % shard.count]!.fine[q]!),
    };
  }
}
