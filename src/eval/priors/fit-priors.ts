// Fits the weights of the priors for one trained model on validation events only: first the shares of the mixture, then the
// weights that maximise the likelihood of the held-out events. The softmax over the catalogue is estimated from relevant
// alternatives (items with sparse features, the model's best) and a few uniform draws, which represent all others.
//
// Two-fold cross-validation: each half of the cases is ranked with weights fitted on the other half, which shows whether the
// priors help the model and vice versa. Ranks share the cases; all of them get the same weights.

import type { Communicator } from '../../dist/comm/communicator.js';
import { joinColumns } from '../../dist/comm/gather-columns.js';
import { singleGroup } from '../../dist/shard/rank-groups.js';
import type { Device } from '../../native/device.js';
import type { Model } from '../../nn/model.js';
import type { CaseOptions } from '../cases.js';
import { joined, listsOf } from '../lists.js';
import { metricOf } from '../metrics.js';
import { alternatives, ChoiceList } from './choice-list.js';
import { COMPONENTS, FEATURES, type PriorWeights } from '../../config/prior-weights.js';
import { fitWeights } from './fit-weights.js';
import { LogPriors } from './log-priors.js';
import { fitShares, Mixture } from './mixture.js';
import { type CasesWithTargets, logitRows, priorCases } from './prior-cases.js';
import { PriorScorer } from './prior-scorer.js';
import { namedWeights } from './weights.js';

/** Maximum users whose validation events are used. */
const MOST_USERS = 4000;
/** The model's best items among the alternatives of a case. */
const TOP = 50;
/** Weight of the penalty on the distance from the model's logit alone, or from the mixture's log-probability alone. */
const RIDGE = 10;
const EQUAL_SHARES = new Float64Array(COMPONENTS.length).fill(1 / COMPONENTS.length);

export interface FittedPriors {
  /** Weights of the better of the two sums. */
  weights: PriorWeights;
  /** Number of cases used. */
  cases: number;
  /** Cross-validated metric of the model alone, of the sum, and of the priors alone. */
  alone: number;
  together: number;
  without: number;
}

export interface FitPriorsInput extends Pick<CaseOptions, 'source' | 'maxLength' | 'exclude' | 'targets' | 'ranks'> {
  device: Device;
  /** If absent, the priors alone are fitted: a blend of the baselines. */
  ranked?: Model;
  metric: string;
}

/** Collective. */
export async function fitPriors({ device, ranked, metric, ...input }: FitPriorsInput): Promise<FittedPriors> {
  const { source, maxLength, exclude, targets = 1, ranks = singleGroup() } = input;
  const { world } = ranks;
  const log = new LogPriors(source, 'validation');
  const logits = await logitRows(ranked, ranks);
  const alone = namedWeights(onlyModel(), EQUAL_SHARES);
  using plain = new PriorScorer(device, log, { weights: alone, logits });
  const which = { source, part: 'validation', maxLength, exclude, targets, users: MOST_USERS, ranks } as const;
  const batches: CasesWithTargets[] = [];
  const halves = [new ChoiceList(log), new ChoiceList(log)] as const;
  for await (const batch of priorCases(which, ranked)) {
    batches.push(batch);
    using scan = ranked && (await plain.scan(batch));
    const k = scan ? Math.min(TOP, source.items) : 0;
    const top = scan ? (await scan.best(k, listsOf(batch.excluded))).ids : new Int32Array(0);
    const cases = Array.from(batch.targets, (_, c) =>
      alternatives(batch, c, { log, top: top.subarray(c * k, (c + 1) * k) }),
    );
    const lists = listsOf(cases.map(({ chosen, drawn }) => [...chosen, ...drawn]));
    const scores = (await scan?.scores(lists)) ?? new Float64Array(lists.ids.length);
    cases.forEach((found, c) => {
      if (found.chosen.length > 0) halves[batch.users[c]! % 2]!.add(found, scores.subarray(lists.offsets[c]));
    });
  }
  const fit = async (lists: readonly ChoiceList[], withModel: boolean): Promise<PriorWeights> => {
    const found: Float64Array[] = [];
    for (const { targets: own } of lists) found.push(...(await allTargets(world, own)));
    const shares = fitShares(found);
    const mixture = new Mixture(log, shares);
    for (const list of lists) list.mix(mixture);
    const start = withModel ? onlyModel() : onlyMixture();
    const free = FEATURES.map(name => name !== 'model' || withModel);
    return namedWeights(await fitWeights(lists, { start, free, ridge: RIDGE, world }), shares);
  };
  const rank = async (weights: PriorWeights): Promise<Int32Array> => {
    using scorer = new PriorScorer(device, log, { weights, logits });
    const found: number[] = [];
    for (const batch of batches) {
      using scan = await scorer.scan(batch);
      found.push(...(await scan.ranks(batch.targets, listsOf(batch.excluded))));
    }
    return (await joinColumns(world, { found: Int32Array.from(found) })).found;
  };
  const { users } = await joinColumns(world, { users: joined(batches.map(batch => batch.users)) });
  const measure = (found: Int32Array) => metricOf({ ranks: found, users, items: source.items }, metric);
  const crossed = async (withModel: boolean): Promise<number> => {
    const ofEven = await rank(await fit([halves[0]], withModel));
    const ofOdd = await rank(await fit([halves[1]], withModel));
    return measure(users.map((user, c) => (user % 2 === 0 ? ofOdd : ofEven)[c]!));
  };
  const without = await crossed(false);
  const together = ranked ? await crossed(true) : without;
  const { counts } = await joinColumns(world, { counts: Int32Array.of(halves[0].cases + halves[1].cases) });
  return {
    weights: await fit(halves, ranked !== undefined && together >= without),
    cases: counts.reduce((sum, count) => sum + count, 0),
    alone: measure(await rank(alone)),
    together,
    without,
  };
}

/** The components of the targets of all ranks, by case. Collective. */
async function allTargets(world: Communicator, own: readonly Float64Array[]): Promise<Float64Array[]> {
  const K = COMPONENTS.length;
  const { all } = await joinColumns(world, { all: Float64Array.from(own.flatMap(parts => Array.from(parts))) });
  return Array.from({ length: all.length / K }, (_, c) => all.subarray(c * K, (c + 1) * K));
}

/** [F] */
function onlyModel(): Float64Array {
  return Float64Array.from(FEATURES, name => (name === 'model' ? 1 : 0));
}

/** [F] The mixture's log-probability. */
function onlyMixture(): Float64Array {
  return Float64Array.from(FEATURES, name => (name === 'base' || name === 'mixture' ? 1 : 0));
}
