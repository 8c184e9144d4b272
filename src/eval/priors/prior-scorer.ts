// Ranks the whole catalogue by the model's logit plus the log's priors:
//
//   score = w_model * logit + w . item features + w . sparse features
//
// The first two terms are one dot product: item features are further columns of the item rows, their weights further
// columns of the query. So the kernels of exact retrieval scan the catalogue; the few items with sparse features are
// left out there, scored here in double precision and merged. Without a model the same code ranks by the priors alone.
//
// C cases, V items, D model width, W = D + item features, F sparse features, k list length.

import type { Device } from '../../native/device.js';
import { targetRank } from '../../ops/target-rank.js';
import { topK } from '../../ops/top-k.js';
import type { Tensor } from '../../tensor/tensor.js';
import { scatter } from '../known-events.js';
import { ITEM_FEATURES, SPARSE_COMPONENTS, SPARSE_FEATURES } from './features.js';
import type { LogPriors } from './log-priors.js';
import { Mixture } from './mixture.js';
import { listedFeatures, listedShares, type PriorWeights } from './weights.js';

const P = ITEM_FEATURES.length;
const F = SPARSE_FEATURES.length;
const K = SPARSE_COMPONENTS.length;
/** The mixture's weight is the last of all. */
const MIXTURE = P + F;
/** Items that the log knows nothing different of would tie, and ids know the counts of held-out events: a hash decides. */
const TIE = 1e-5 / 2 ** 32;

/** Item rows of the model on the host: logit = state . row, normalisation and temperature included in the two. */
export interface LogitRows {
  /** [V, D] */
  readonly rows: Float32Array;
  /** D. */
  readonly width: number;
}

export const NO_MODEL: LogitRows = { rows: new Float32Array(0), width: 0 };

export interface PriorCases {
  /** [C, D]; empty without a model. */
  readonly states: Float32Array;
  /** [C] all known items of each case, oldest first. */
  readonly histories: readonly Int32Array[];
  /** [C] ids that are left out of each ranking. */
  readonly excluded: readonly ReadonlySet<number>[];
}

/** Items of one case that have sparse features and are not left out, with what these add and come to. */
interface Special {
  items: number[];
  added: number[];
  scores: number[];
}

export class PriorScorer {
  readonly #device: Device;
  readonly #log: LogPriors;
  readonly #mixture: Mixture;
  readonly #weights: Float64Array;
  /** D. */
  readonly #width: number;
  /** [V, W] */
  readonly #rows: Float32Array;
  readonly #table: Tensor<'f32'>;

  constructor(device: Device, log: LogPriors, { weights, logits }: { weights: PriorWeights; logits: LogitRows }) {
    this.#device = device;
    this.#log = log;
    this.#mixture = new Mixture(log, listedShares(weights));
    this.#weights = listedFeatures(weights);
    this.#width = logits.width;
    this.#rows = widen(logits, log, this.#mixture);
    this.#table = device.from(this.#rows, [log.counts.length, logits.width + P]);
  }

  [Symbol.dispose](): void {
    this.#table.dispose();
  }

  /** [C] exact ranks of the targets; V + 1 for one that is left out. */
  async ranks(cases: PriorCases, targets: Int32Array): Promise<Int32Array> {
    const queries = this.#queries(cases);
    const bonus = new Float32Array(targets.length);
    const ahead = new Int32Array(targets.length);
    const left = Array.from(targets, (target, c) => {
      const special = this.#special(cases, queries, c);
      const at = special.items.indexOf(target);
      bonus[c] = special.added[at] ?? 0;
      const bar = special.scores[at] ?? this.#dense(queries, c, target);
      special.items.forEach((item, i) => {
        const score = special.scores[i]!;
        if (score > bar || (score === bar && item < target)) ahead[c]!++;
      });
      return [...cases.excluded[c]!, ...special.items.filter(item => item !== target)];
    });
    using query = this.#upload(queries);
    using wanted = this.#device.from(targets);
    using added = this.#device.from(bonus);
    using excluded = new UploadedLists(this.#device, left);
    using ranks = targetRank(this.#device, query, this.#table, { targets: wanted, excluded, bonus: added });
    const dense = await this.#device.read(ranks);
    return dense.map((rank, c) => (rank > this.#log.counts.length ? rank : rank + ahead[c]!));
  }

  /** The k best items of each case with their scores, best first; -1 and -Infinity where fewer are left. */
  async lists(cases: PriorCases, k: number): Promise<{ ids: Int32Array; scores: Float64Array }> {
    const queries = this.#queries(cases);
    const special = cases.histories.map((_, c) => this.#special(cases, queries, c));
    using query = this.#upload(queries);
    using excluded = new UploadedLists(
      this.#device,
      special.map(({ items }, c) => [...cases.excluded[c]!, ...items]),
    );
    const top = topK(this.#device, query, this.#table, { k, excluded });
    const [plain, plainScores] = await Promise.all([this.#device.read(top.ids), this.#device.read(top.scores)]);
    top.ids.dispose();
    top.scores.dispose();
    const found = {
      ids: new Int32Array(plain.length).fill(-1),
      scores: new Float64Array(plain.length).fill(-Infinity),
    };
    special.forEach(({ items, scores }, c) => {
      const all = Array.from({ length: k }, (_, i) => ({ item: plain[c * k + i]!, score: plainScores[c * k + i]! }));
      items.forEach((item, i) => all.push({ item, score: scores[i]! }));
      const best = all.filter(({ item }) => item >= 0).sort((a, b) => b.score - a.score || a.item - b.item);
      best.slice(0, k).forEach(({ item, score }, i) => {
        found.ids[c * k + i] = item;
        found.scores[c * k + i] = score;
      });
    });
    return found;
  }

  /** [C, W] */
  #queries({ states, histories }: PriorCases): Float32Array {
    const [D, W] = [this.#width, this.#width + P];
    const queries = new Float32Array(histories.length * W);
    for (let c = 0; c < histories.length; c++) {
      for (let d = 0; d < D; d++) queries[c * W + d] = this.#weights[0]! * states[c * D + d]!;
      for (let p = 0; p < P; p++) queries[c * W + D + p] = this.#weights[1 + p]!;
    }
    return queries;
  }

  #upload(queries: Float32Array): Tensor<'f32'> {
    const W = this.#width + P;
    return this.#device.from(queries, [queries.length / W, W]);
  }

  /** Score of an item without its sparse features. */
  #dense(queries: Float32Array, c: number, item: number): number {
    const W = this.#width + P;
    let sum = 0;
    for (let d = 0; d < W; d++) sum += queries[c * W + d]! * this.#rows[item * W + d]!;
    return sum;
  }

  #special({ histories, excluded }: PriorCases, queries: Float32Array, c: number): Special {
    const { items, values, parts } = this.#log.sparse(histories[c]!);
    const special: Special = { items: [], added: [], scores: [] };
    items.forEach((item, i) => {
      if (excluded[c]!.has(item)) return;
      let added = this.#weights[MIXTURE]! * this.#mixture.added(item, parts, i * K);
      for (let f = 0; f < F; f++) added += this.#weights[1 + P + f]! * values[i * F + f]!;
      special.items.push(item);
      special.added.push(added);
      special.scores.push(this.#dense(queries, c, item) + added);
    });
    return special;
  }
}

/** [V, W] item rows with the item features as further columns. */
function widen({ rows, width }: LogitRows, log: LogPriors, mixture: Mixture): Float32Array {
  const W = width + P;
  const wide = new Float32Array(log.counts.length * W);
  for (let item = 0; item < log.counts.length; item++) {
    wide.set(rows.subarray(item * width, (item + 1) * width), item * W);
    log.popularities.forEach((feature, p) => {
      wide[item * W + width + p] = feature[item]!;
    });
    wide[item * W + W - 1] = mixture.base(item) + TIE * scatter(item);
  }
  return wide;
}

class UploadedLists {
  readonly ids: Tensor<'i32'>;
  readonly offsets: Tensor<'i32'>;

  constructor(device: Device, lists: readonly (readonly number[])[]) {
    const offsets = new Int32Array(lists.length + 1);
    lists.forEach((list, c) => {
      offsets[c + 1] = offsets[c]! + list.length;
    });
    const ids = new Int32Array(offsets.at(-1)!);
    lists.forEach((list, c) => ids.set(list, offsets[c]));
    this.offsets = device.from(offsets);
    this.ids = device.from(ids);
  }

  [Symbol.dispose](): void {
    this.ids.dispose();
    this.offsets.dispose();
  }
}
