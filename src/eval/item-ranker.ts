// Top items for many histories at once, in dense ids: one jagged batch through the model, one scan of the catalogue. Scores are
// the logits of the loss (cosine / temperature if both sides are normalised), plus the log's priors if the run has them: the
// same as in evaluation, and the same bits however requests are batched.
//
// Q requests, D width, V items, C candidates.

import type { Model } from '../nn/model.js';
import { gatherRows } from '../ops/gather-rows.js';
import { Tape } from '../ops/tape.js';
import { topK } from '../ops/top-k.js';
import type { Tensor } from '../tensor/tensor.js';
import { lastStates } from './last-states.js';
import { scaledStates } from './priors/prior-cases.js';
import type { PriorScorer } from './priors/prior-scorer.js';

export interface History {
  /** Dense item ids, oldest first; at least one. */
  items: Int32Array;
  times: Float64Array;
  actions: Int32Array;
  /** The time to recommend for. */
  at: number;
}

export interface RankRequest {
  history: History;
  k: number;
  /** Dense ids to exclude from the ranking, in any order, repeats allowed. */
  excluded: Int32Array;
  /** Rank only these; default: the whole catalogue. Requests with the same object share a scan. */
  candidates?: Candidates;
}

export interface RankedItem {
  item: number;
  score: number;
}

/** Items to rank instead of the whole catalogue. */
export interface Candidates {
  /** Ascending dense ids. */
  readonly ids: Int32Array;
}

/** Request indices, grouped by candidates. */
type Groups = ReadonlyMap<Candidates | undefined, readonly number[]>;

/** The kernel's id for "no item". */
const NO_ITEM = -1;

export interface RankerOptions {
  /** Number of items with an original id: higher ids are reserved rows and never recommended. */
  named: number;
  /** Adds the log's priors; default: the model alone. */
  priors?: PriorScorer;
}

export class ItemRanker {
  readonly #model: Model;
  readonly #options: RankerOptions;
  /** Owns tables with the lifetime of this object. */
  readonly #tape: Tape;
  /** [V, D] */
  readonly #rows: Tensor<'f32'>;
  #directions: Tensor<'f32'> | undefined;

  constructor(model: Model, options: RankerOptions) {
    this.#model = model;
    this.#options = options;
    this.#tape = new Tape(model.device, { training: false });
    this.#rows = model.scorer.itemVectors(this.#tape);
  }

  /** [Q, D] vectors of histories: their dot product with an item's vector is the model's score. */
  states(histories: readonly History[]): Promise<Float32Array> {
    return scaledStates(this.#model, jagged(histories, this.#model.definition.maxLength));
  }

  /** [V, D] vectors of all items, or [C, D] of some. */
  async itemVectors(some?: Int32Array): Promise<Float32Array> {
    const { device } = this.#model;
    if (!some) return await device.read(this.#rows);
    using tape = new Tape(device, { training: false });
    using ids = device.from(some);
    return await device.read(gatherRows(tape, this.#rows, ids));
  }

  /** For each request its best items, best first, at most k. */
  async rank(requests: readonly RankRequest[]): Promise<RankedItem[][]> {
    if (requests.length === 0) return [];
    const groups = new Map<Candidates | undefined, number[]>();
    requests.forEach(({ candidates }, r) => {
      const members = groups.get(candidates);
      if (members) members.push(r);
      else groups.set(candidates, [r]);
    });
    const answers: RankedItem[][] = [];
    const found = this.#options.priors
      ? await this.#withPriors(requests, groups)
      : await this.#byModel(requests, groups);
    [...groups.values()].forEach((members, g) => members.forEach((r, i) => (answers[r] = found[g]![i]!)));
    return answers;
  }

  /** The most similar items by cosine of their vectors, without the item itself. */
  async similar(item: number, k: number, candidates?: Candidates): Promise<RankedItem[]> {
    const { device } = this.#model;
    const rows = (this.#directions ??= this.#model.scorer.itemDirections(this.#tape));
    using tape = new Tape(device, { training: false });
    const excluded = Int32Array.of(item);
    using ids = device.from(excluded);
    const [found] = await this.#scan([{ k, excluded }], { query: gatherRows(tape, rows, ids), rows, candidates });
    return found!;
  }

  dispose(): void {
    this.#tape.dispose();
  }

  /** Encoder and scans are enqueued together, so that the device never waits for a busy JavaScript thread in between. */
  async #byModel(requests: readonly RankRequest[], groups: Groups): Promise<RankedItem[][][]> {
    const { device, scorer, definition } = this.#model;
    const histories = requests.map(({ history }) => history);
    const batch = jagged(histories, definition.maxLength);
    using tape = new Tape(device, { training: false });
    using tensors = this.#model.upload(batch);
    const states = lastStates(tape, this.#model, tensors, batch.offsets); // [Q, D]
    return await Promise.all(
      [...groups].map(([candidates, members]) => {
        using ids = device.from(Int32Array.from(members));
        const query = scorer.queryRows(tape, states, ids);
        const wanted = members.map(r => requests[r]!);
        return this.#scan(wanted, { query, rows: this.#rows, candidates });
      }),
    );
  }

  /** Priors score the whole catalogue, so candidates are implemented by excluding all other items. */
  async #withPriors(requests: readonly RankRequest[], groups: Groups): Promise<RankedItem[][][]> {
    const states = await this.states(requests.map(({ history }) => history));
    const d = this.#model.definition.d;
    const found: RankedItem[][][] = [];
    for (const [candidates, members] of groups) {
      const wanted = members.map(r => requests[r]!);
      const others = candidates ? complement(candidates.ids, this.#model.shape.items) : this.#reserved();
      const queries = new Float32Array(members.length * d);
      members.forEach((r, i) => queries.set(states.subarray(r * d, (r + 1) * d), i * d));
      const cases = {
        states: queries,
        histories: wanted.map(({ history }) => history.items),
        excluded: wanted.map(({ excluded }) => new Set([...excluded, ...others])),
      };
      const k = this.#longest(wanted, candidates);
      const { ids, scores } = await this.#options.priors!.lists(cases, k);
      found.push(wanted.map((request, q) => best(ids.subarray(q * k), scores.subarray(q * k), Math.min(request.k, k))));
    }
    return found;
  }

  async #scan(
    requests: readonly Pick<RankRequest, 'k' | 'excluded'>[],
    { query, rows, candidates }: { query: Tensor<'f32'>; rows: Tensor<'f32'>; candidates: Candidates | undefined },
  ): Promise<RankedItem[][]> {
    const { device } = this.#model;
    using tape = new Tape(device, { training: false });
    let table = rows;
    let lists = requests.map(({ excluded }) => excluded);
    if (candidates) {
      if (candidates.ids.length === 0) return requests.map(() => []);
      using ids = device.from(candidates.ids);
      table = gatherRows(tape, rows, ids); // [C, D]
      const local = new Map(Array.from(candidates.ids, (id, at) => [id, at]));
      lists = lists.map(excluded => excluded.map(id => local.get(id) ?? NO_ITEM));
    } else if (this.#model.shape.items > this.#options.named) {
      const reserved = this.#reserved();
      lists = lists.map(excluded => Int32Array.from([...excluded, ...reserved]));
    }
    const offsets = new Int32Array(lists.length + 1);
    lists.forEach((list, q) => (offsets[q + 1] = offsets[q]! + list.length));
    const all = new Int32Array(offsets.at(-1)!);
    lists.forEach((list, q) => all.set(list, offsets[q]));
    using excludedIds = device.from(all);
    using excludedOffsets = device.from(offsets);
    const k = this.#longest(requests, candidates);
    const top = topK(device, query, table, { k, excluded: { ids: excludedIds, offsets: excludedOffsets } });
    const reading = Promise.all([device.read(top.ids), device.read(top.scores)]);
    top.ids.dispose();
    top.scores.dispose();
    const [ids, scores] = await reading;
    const original = candidates ? ids.map(at => (at < 0 ? NO_ITEM : candidates.ids[at]!)) : ids;
    return requests.map((request, q) => best(original.subarray(q * k), scores.subarray(q * k), Math.min(request.k, k)));
  }

  #longest(requests: readonly Pick<RankRequest, 'k'>[], candidates: Candidates | undefined): number {
    const most = Math.max(...requests.map(({ k }) => k));
    return Math.min(most, candidates?.ids.length ?? this.#model.shape.items);
  }

  #reserved(): number[] {
    const { named } = this.#options;
    return Array.from({ length: this.#model.shape.items - named }, (_, i) => named + i);
  }
}

function best(ids: Int32Array, scores: Float32Array | Float64Array, k: number): RankedItem[] {
  return Array.from({ length: k }, (_, i) => ({ item: ids[i]!, score: scores[i]! })).filter(({ item }) => item >= 0);
}

function complement(ids: Int32Array, size: number): number[] {
  const kept = new Set(ids);
  return Array.from({ length: size }, (_, id) => id).filter(id => !kept.has(id));
}

/** The newest events of each history, concatenated, as the model's input. */
function jagged(histories: readonly History[], maxLength: number) {
  const from = histories.map(({ items }) => Math.max(0, items.length - maxLength));
  const offsets = new Int32Array(histories.length + 1);
  histories.forEach(({ items }, h) => (offsets[h + 1] = offsets[h]! + items.length - from[h]!));
  const size = offsets.at(-1)!;
  const batch = {
    offsets,
    item: new Int32Array(size),
    action: new Int32Array(size),
    time: new Float64Array(size),
    nextTime: new Float64Array(size),
  };
  histories.forEach(({ items, actions, times, at }, h) => {
    const [begin, end] = [offsets[h]!, offsets[h + 1]!];
    batch.item.set(items.subarray(from[h]), begin);
    batch.action.set(actions.subarray(from[h]), begin);
    batch.time.set(times.subarray(from[h]), begin);
    batch.nextTime.set(times.subarray(from[h]! + 1), begin);
    batch.nextTime[end - 1] = at;
  });
  return batch;
}
