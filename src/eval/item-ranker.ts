// The best next items for many histories at once, in dense ids: one jagged batch through the model, one scan of the
// catalogue. Scores are what the loss trains (cosine / temperature where both sides are normalised), plus the log's priors
// where the run has them: the same as evaluation ranks by, and the same bits however requests are batched.
//
// Q requests, D width, V items, C candidates.

import type { Model } from '../nn/model.js';
import { gatherRows } from '../ops/gather-rows.js';
import { Tape } from '../ops/tape.js';
import { topK } from '../ops/top-k.js';
import type { Tensor } from '../tensor/tensor.js';
import { scaledStates } from './priors/prior-cases.js';
import type { PriorScorer } from './priors/prior-scorer.js';

export interface History {
  /** Dense item ids, oldest first; at least one. */
  items: Int32Array;
  times: Float64Array;
  actions: Int32Array;
  /** The moment to recommend for. */
  at: number;
}

export interface RankRequest {
  history: History;
  k: number;
  /** Dense ids that are left out of the ranking. */
  excluded: Iterable<number>;
  /** Rank only these; the whole catalogue when absent. Requests with the same object share a scan. */
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

export interface RankerOptions {
  /** Items that can be named: ids from here on are reserved rows of the catalogue and never recommended. */
  named: number;
  /** Ranks with the log's priors; by the model alone when absent. */
  priors?: PriorScorer;
}

export class ItemRanker {
  readonly #model: Model;
  readonly #options: RankerOptions;
  /** Holds tables that live as long as this. */
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
    const states = await this.states(requests.map(({ history }) => history));
    const d = this.#model.definition.d;
    const answers: RankedItem[][] = [];
    const groups = new Map<Candidates | undefined, number[]>();
    requests.forEach(({ candidates }, r) => groups.set(candidates, [...(groups.get(candidates) ?? []), r]));
    for (const [candidates, members] of groups) {
      const wanted = members.map(r => requests[r]!);
      const queries = new Float32Array(members.length * d);
      members.forEach((r, i) => queries.set(states.subarray(r * d, (r + 1) * d), i * d));
      const found = this.#options.priors
        ? await this.#withPriors(queries, wanted, candidates)
        : await this.#byModel(queries, wanted, candidates);
      members.forEach((r, i) => (answers[r] = found[i]!));
    }
    return answers;
  }

  /** The items whose vectors point most nearly in the direction of one item's, by cosine; itself is left out. */
  async similar(item: number, k: number, candidates?: Candidates): Promise<RankedItem[]> {
    const { device } = this.#model;
    this.#directions ??= this.#model.scorer.itemDirections(this.#tape);
    using tape = new Tape(device, { training: false });
    using ids = device.from(Int32Array.of(item));
    const query = await device.read(gatherRows(tape, this.#directions, ids));
    const [found] = await this.#scan(query, [{ k, excluded: [item] }], { rows: this.#directions, candidates });
    return found!;
  }

  dispose(): void {
    this.#tape.dispose();
  }

  #byModel(
    queries: Float32Array,
    requests: readonly RankRequest[],
    candidates: Candidates | undefined,
  ): Promise<RankedItem[][]> {
    return this.#scan(queries, requests, { rows: this.#rows, candidates });
  }

  /** Priors know the whole catalogue, so candidates are what is left when all others are left out. */
  async #withPriors(
    states: Float32Array,
    requests: readonly RankRequest[],
    candidates: Candidates | undefined,
  ): Promise<RankedItem[][]> {
    const others = candidates ? complement(candidates.ids, this.#model.shape.items) : this.#reserved();
    const cases = {
      states,
      histories: requests.map(({ history }) => history.items),
      excluded: requests.map(({ excluded }) => new Set([...excluded, ...others])),
    };
    const k = this.#longest(requests, candidates);
    const { ids, scores } = await this.#options.priors!.lists(cases, k);
    return requests.map((request, q) => best(ids.subarray(q * k), scores.subarray(q * k), Math.min(request.k, k)));
  }

  async #scan(
    queries: Float32Array,
    requests: readonly Pick<RankRequest, 'k' | 'excluded'>[],
    { rows, candidates }: { rows: Tensor<'f32'>; candidates: Candidates | undefined },
  ): Promise<RankedItem[][]> {
    const { device, definition } = this.#model;
    using tape = new Tape(device, { training: false });
    using query = device.from(queries, [requests.length, definition.d]);
    let table = rows;
    let local: ReadonlyMap<number, number> | undefined;
    if (candidates) {
      if (candidates.ids.length === 0) return requests.map(() => []);
      using ids = device.from(candidates.ids);
      table = gatherRows(tape, rows, ids); // [C, D]
      local = new Map(Array.from(candidates.ids, (id, at) => [id, at]));
    }
    const reserved = candidates ? [] : this.#reserved();
    const lists = requests.map(({ excluded }) =>
      local ? Array.from(excluded, id => local.get(id) ?? -1).filter(at => at >= 0) : [...excluded, ...reserved],
    );
    const offsets = new Int32Array(lists.length + 1);
    lists.forEach((list, q) => (offsets[q + 1] = offsets[q]! + list.length));
    using excludedIds = device.from(Int32Array.from(lists.flat()));
    using excludedOffsets = device.from(offsets);
    const k = this.#longest(requests, candidates);
    const top = topK(device, query, table, { k, excluded: { ids: excludedIds, offsets: excludedOffsets } });
    const [ids, scores] = await Promise.all([device.read(top.ids), device.read(top.scores)]);
    top.ids.dispose();
    top.scores.dispose();
    const original = candidates ? ids.map(at => (at < 0 ? -1 : candidates.ids[at]!)) : ids;
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

/** What the model reads of the histories: the newest events of each, one after the other. */
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
