// Weights of the priors for one trained model, from the validation events alone: those that make the held-out events most
// probable. The softmax over the catalogue is estimated from alternatives that matter (items with sparse features, the
// model's own best) and a few drawn uniformly, which stand for all others.
//
// They are kept only where they help: each half of the cases is ranked with weights fitted to the other half, and the
// metric must not be lower than the model's own.

import type { Device } from '../../native/device.js';
import type { Model } from '../../nn/model.js';
import { Random } from '../../util/random.js';
import type { CaseOptions } from '../cases.js';
import { metricOf } from '../metrics.js';
import { type Choices, fitWeights } from './fit-weights.js';
import { LogPriors, SPARSE_FEATURES, type SparseFeatures } from './log-priors.js';
import { type CasesWithTargets, logitRows, priorCases } from './prior-cases.js';
import { type LogitRows, PriorScorer } from './prior-scorer.js';
import { FEATURES, namedWeights, type PriorWeights } from './weights.js';

/** Users whose validation events are fitted at most. */
const MOST_USERS = 4000;
/** The model's best items and uniform draws among the alternatives of a case. */
const TOP = 50;
const DRAWS = 50;
const RIDGE = 2;
const F = SPARSE_FEATURES.length;

export interface FittedPriors {
  weights: PriorWeights;
  /** Cases that were fitted. */
  cases: number;
  /** The metric of the model alone and of the sum, each case ranked with weights that were fitted without it. */
  alone: number;
  together: number;
}

export interface FitPriorsInput extends Pick<CaseOptions, 'source' | 'maxLength' | 'exclude' | 'targets'> {
  device: Device;
  /** Absent: the priors alone are fitted, a blend of the baselines. */
  ranked?: Model;
  metric: string;
  /** What the log says before validation, when it is known already. */
  log?: LogPriors;
}

export async function fitPriors({ device, ranked, metric, ...input }: FitPriorsInput): Promise<FittedPriors> {
  const { source, maxLength, exclude, targets = 1 } = input;
  const log = input.log ?? new LogPriors(source, 'validation');
  const logits = await logitRows(ranked);
  const model = new Float64Array(FEATURES.length);
  if (ranked) model[0] = 1;
  const alone = namedWeights(model);
  using plain = new PriorScorer(device, log, { weights: alone, logits });
  const which = { source, part: 'validation', maxLength, exclude, targets, users: MOST_USERS } as const;
  const batches: CasesWithTargets[] = [];
  const halves = [new ChoiceList(log, logits), new ChoiceList(log, logits)] as const;
  for await (const batch of priorCases(which, ranked)) {
    batches.push(batch);
    const top = ranked ? (await plain.lists(batch, Math.min(TOP, source.items))).ids : new Int32Array(0);
    batch.users.forEach((user, c) => halves[user % 2]!.add(batch, c, top));
  }
  const fit = (lists: readonly ChoiceList[]) => {
    const free = FEATURES.map((_, f) => f > 0 || ranked !== undefined);
    return namedWeights(fitWeights(lists, { start: model, free, ridge: RIDGE }));
  };
  const rank = async (weights: PriorWeights): Promise<Int32Array[]> => {
    using scorer = new PriorScorer(device, log, { weights, logits });
    const ranks: Int32Array[] = [];
    for (const batch of batches) ranks.push(await scorer.ranks(batch, batch.targets));
    return ranks;
  };
  const users = Int32Array.from(batches.flatMap(batch => [...batch.users]));
  const measure = (ranks: number[]) => metricOf({ ranks: Int32Array.from(ranks), users, items: source.items }, metric);
  const [own, ofEven, ofOdd] = [await rank(alone), await rank(fit([halves[0]])), await rank(fit([halves[1]]))];
  const crossed = batches.flatMap((batch, b) =>
    Array.from(batch.users, (user, c) => (user % 2 === 0 ? ofOdd : ofEven)[b]![c]!),
  );
  return {
    weights: fit(halves),
    cases: halves[0].cases + halves[1].cases,
    alone: measure(own.flatMap(ranks => [...ranks])),
    together: measure(crossed),
  };
}

/** Alternatives of cases, growing. */
class ChoiceList implements Choices {
  x = new Float32Array(1 << 16);
  offset = new Float32Array(1 << 12);
  readonly starts = [0];
  readonly #log: LogPriors;
  readonly #logits: LogitRows;
  #size = 0;

  constructor(log: LogPriors, logits: LogitRows) {
    this.#log = log;
    this.#logits = logits;
  }

  get cases(): number {
    return this.starts.length - 1;
  }

  /** Case c of a batch; one whose target is left out of the ranking says nothing. */
  add(batch: CasesWithTargets, c: number, top: Int32Array): void {
    const target = batch.targets[c]!;
    const left = batch.excluded[c]!;
    if (left.has(target)) return;
    const D = this.#logits.width;
    const state = batch.states.subarray(c * D, (c + 1) * D);
    const sparse = this.#log.sparse(batch.histories[c]!);
    const rowOf = new Map(sparse.items.map((item, i) => [item, i]));
    const push = (item: number, offset: number): void =>
      this.#push({ item, offset, state, sparse, row: rowOf.get(item) });
    const k = top.length / batch.users.length;
    const chosen = new Set([target, ...sparse.items, ...top.subarray(c * k, (c + 1) * k)]);
    chosen.delete(-1);
    for (const item of chosen) if (!left.has(item)) push(item, 0);
    const drawn = this.#draw(batch, c, chosen);
    const others = this.#log.counts.length - new Set([...chosen, ...left]).size;
    for (const item of drawn) push(item, Math.log(others / drawn.length));
    this.starts.push(this.#size);
  }

  /** Items that stand for all that are neither chosen nor left out. */
  #draw(batch: CasesWithTargets, c: number, chosen: ReadonlySet<number>): number[] {
    const items = this.#log.counts.length;
    const random = new Random(0, 'alternatives', batch.users[c], batch.histories[c]!.length);
    const draws = Array.from({ length: DRAWS }, () => random.below(items));
    return draws.filter(item => !chosen.has(item) && !batch.excluded[c]!.has(item));
  }

  #push({ item, offset, state, sparse, row }: Alternative): void {
    const width = FEATURES.length;
    if ((this.#size + 1) * width > this.x.length) this.x = grown(this.x);
    if (this.#size + 1 > this.offset.length) this.offset = grown(this.offset);
    const D = state.length;
    let logit = 0;
    for (let d = 0; d < D; d++) logit += state[d]! * this.#logits.rows[item * D + d]!;
    let at = this.#size * width;
    this.x[at++] = logit;
    for (const feature of this.#log.itemFeatures) this.x[at++] = feature[item]!;
    for (let f = 0; f < F; f++) this.x[at++] = row === undefined ? 0 : sparse.values[row * F + f]!;
    this.offset[this.#size++] = offset;
  }
}

interface Alternative {
  item: number;
  offset: number;
  /** [D] */
  state: Float32Array;
  sparse: SparseFeatures;
  /** The item's row of sparse features, if it has one. */
  row: number | undefined;
}

function grown(values: Float32Array): Float32Array<ArrayBuffer> {
  const larger = new Float32Array(2 * values.length);
  larger.set(values);
  return larger;
}
