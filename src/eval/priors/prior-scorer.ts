// Ranks the whole catalogue by the model's logit plus the log's priors:
//
//   score = w_model * logit + w . item features + w . sparse features
//
// The first two terms are one dot product: item features are extra columns of the item rows, their weights extra columns of the
// query. So the exact retrieval kernels scan the catalogue; the few items with sparse features are excluded there, scored in
// double precision and merged. Without a model the same code ranks by the priors alone. If the model's rows are sharded over
// ranks, so are these.
//
// C cases, V items, D model width, W = D + item features, F sparse features, k list length.

import type { Device } from '../../native/device.js';
import type { Tensor } from '../../tensor/tensor.js';
import { ownedRows, WHOLE } from '../../util/row-shard.js';
import { SingleRank } from '../../dist/comm/single-rank.js';
import { CatalogueScan } from '../catalogue-scan.js';
import type { ItemPlace } from '../item-place.js';
import { scatter } from '../known-events.js';
import { listsOf } from '../lists.js';
import type { RankedLists } from '../merge-best.js';
import { ITEM_FEATURES, type PriorWeights, SPARSE_COMPONENTS, SPARSE_FEATURES } from '../../config/prior-weights.js';
import type { SparseFeatures } from './features.js';
import type { LogPriors } from './log-priors.js';
import { Mixture } from './mixture.js';
import { listedFeatures, listedShares } from './weights.js';

const P = ITEM_FEATURES.length;
const F = SPARSE_FEATURES.length;
const K = SPARSE_COMPONENTS.length;
/** The mixture's weight is the last of all. */
const MIXTURE = P + F;
/** Items with equal features would tie, and ids leak the counts of held-out events: a hash breaks ties. */
const TIE = 1e-5 / 2 ** 32;

/** Item rows of the model on the host: logit = state . row, normalisation and temperature included in the two. */
export interface LogitRows extends ItemPlace {
  /** [V, D], or this rank's rows. */
  readonly rows: Float32Array;
  /** D. */
  readonly width: number;
}

export const NO_MODEL: LogitRows = { rows: new Float32Array(0), width: 0, shard: WHOLE, group: new SingleRank() };

export interface PriorCases {
  /** [C, D]; empty without a model. */
  readonly states: Float32Array;
  /** [C] all known items of each case, oldest first. */
  readonly histories: readonly Int32Array[];
  /** [C] ids excluded from each ranking. */
  readonly excluded: readonly ReadonlySet<number>[];
}

export class PriorScorer {
  readonly #device: Device;
  readonly #log: LogPriors;
  readonly #mixture: Mixture;
  readonly #weights: Float64Array;
  readonly #logits: LogitRows;
  /** [V, W], or this rank's rows. */
  readonly #rows: Float32Array;
  readonly #table: Tensor<'f32'>;

  constructor(device: Device, log: LogPriors, { weights, logits }: { weights: PriorWeights; logits: LogitRows }) {
    this.#device = device;
    this.#log = log;
    this.#mixture = new Mixture(log, listedShares(weights));
    this.#weights = listedFeatures(weights);
    this.#logits = logits;
    this.#rows = widen(logits, log, this.#mixture);
    const width = logits.width + P;
    this.#table = device.from(this.#rows, [this.#rows.length / width, width]);
  }

  [Symbol.dispose](): void {
    this.#table.dispose();
  }

  /** Scores the cases against all items. Collective over the group that has the model's rows. */
  scan(cases: PriorCases): Promise<CatalogueScan> {
    const { shard, group } = this.#logits;
    const items = this.#log.counts.length;
    const rows = { device: this.#device, table: this.#table, host: this.#rows, items, shard, group };
    const sparse = cases.histories.map(history => this.#log.sparse(history));
    const raised = listsOf(sparse.map(({ items: ids }) => ids));
    const added = new Float64Array(raised.ids.length);
    sparse.forEach((features, c) => {
      for (let i = 0; i < features.items.length; i++) added[raised.offsets[c]! + i] = this.#added(features, i);
    });
    return CatalogueScan.begin(rows, {
      queries: this.#queries(cases),
      raised: { items: raised, added },
    });
  }

  /** The k best items of each case with their scores, best first; -1 and -Infinity where fewer are left. */
  async lists(cases: PriorCases, k: number): Promise<RankedLists> {
    using scan = await this.scan(cases);
    return await scan.best(k, listsOf(cases.excluded));
  }

  /** [C, W] */
  #queries({ states, histories }: PriorCases): Float32Array {
    const D = this.#logits.width;
    const W = D + P;
    const queries = new Float32Array(histories.length * W);
    for (let c = 0; c < histories.length; c++) {
      for (let d = 0; d < D; d++) queries[c * W + d] = this.#weights[0]! * states[c * D + d]!;
      for (let p = 0; p < P; p++) queries[c * W + D + p] = this.#weights[1 + p]!;
    }
    return queries;
  }

  /** The contribution of sparse features to the score of item i of a list. */
  #added({ items, values, parts }: SparseFeatures, i: number): number {
    let added = this.#weights[MIXTURE]! * this.#mixture.added(items[i]!, parts, i * K);
    for (let f = 0; f < F; f++) added += this.#weights[1 + P + f]! * values[i * F + f]!;
    return added;
  }
}

/** [V, W] item rows with the item features as extra columns, or this rank's rows. */
function widen({ rows, width, shard }: LogitRows, log: LogPriors, mixture: Mixture): Float32Array {
  const W = width + P;
  const wide = new Float32Array(ownedRows(log.counts.length, shard) * W);
  for (let row = 0; row * W < wide.length; row++) {
    wide.set(rows.subarray(row * width, (row + 1) * width), row * W);
    const item = row * shard.count + shard.index;
    log.popularities.forEach((feature, p) => {
      wide[row * W + width + p] = feature[item]!;
    });
    wide[row * W + W - 1] = mixture.base(item) + TIE * scatter(item);
  }
  return wide;
}
