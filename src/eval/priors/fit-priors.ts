// Weights of the priors for one trained model, from the validation events alone: first the shares of the mixture, then the
// weights that make the held-out events most probable. The softmax over the catalogue is estimated from alternatives that
// matter (items with sparse features, the model's own best) and a few drawn uniformly, which stand for all others.
//
// Each half of the cases is ranked with weights fitted to the other half: so it shows whether the priors help the model, and
// whether the model helps the priors.

import type { Device } from '../../native/device.js';
import type { Model } from '../../nn/model.js';
import type { CaseOptions } from '../cases.js';
import { metricOf } from '../metrics.js';
import { ChoiceList } from './choice-list.js';
import { COMPONENTS } from './features.js';
import { fitWeights } from './fit-weights.js';
import { LogPriors } from './log-priors.js';
import { fitShares, Mixture } from './mixture.js';
import { type CasesWithTargets, logitRows, priorCases } from './prior-cases.js';
import { PriorScorer } from './prior-scorer.js';
import { FEATURES, namedWeights, type PriorWeights } from './weights.js';

/** Users whose validation events are fitted at most. */
const MOST_USERS = 4000;
/** The model's best items among the alternatives of a case. */
const TOP = 50;
const RIDGE = 10;

export interface FittedPriors {
  /** Of the better of the two sums. */
  weights: PriorWeights;
  /** Cases that were fitted. */
  cases: number;
  /** The metric of the model alone, of the sum, and of the priors without the model; each case ranked with weights fitted without it. */
  alone: number;
  together: number;
  without: number;
}

export interface FitPriorsInput extends Pick<CaseOptions, 'source' | 'maxLength' | 'exclude' | 'targets'> {
  device: Device;
  /** Absent: the priors alone are fitted, a blend of the baselines. */
  ranked?: Model;
  metric: string;
}

export async function fitPriors({ device, ranked, metric, ...input }: FitPriorsInput): Promise<FittedPriors> {
  const { source, maxLength, exclude, targets = 1 } = input;
  const log = new LogPriors(source, 'validation');
  const logits = await logitRows(ranked);
  const alone = onlyModel(ranked ? 1 : 0);
  using plain = new PriorScorer(device, log, { weights: alone, logits });
  const which = { source, part: 'validation', maxLength, exclude, targets, users: MOST_USERS } as const;
  const batches: CasesWithTargets[] = [];
  const halves = [new ChoiceList(log, logits), new ChoiceList(log, logits)] as const;
  for await (const batch of priorCases(which, ranked)) {
    batches.push(batch);
    const top = ranked ? (await plain.lists(batch, Math.min(TOP, source.items))).ids : new Int32Array(0);
    batch.users.forEach((user, c) => halves[user % 2]!.add(batch, c, top));
  }
  const fit = (lists: readonly ChoiceList[], withModel: boolean): PriorWeights => {
    const shares = fitShares(lists.flatMap(list => list.targets));
    const mixture = new Mixture(log, shares);
    for (const list of lists) list.mix(mixture);
    const start = Float64Array.from(FEATURES, name => (name === 'model' && withModel ? 1 : 0));
    const free = FEATURES.map(name => name !== 'model' || withModel);
    return namedWeights(fitWeights(lists, { start, free, ridge: RIDGE }), shares);
  };
  const rank = async (weights: PriorWeights): Promise<Int32Array[]> => {
    using scorer = new PriorScorer(device, log, { weights, logits });
    const ranks: Int32Array[] = [];
    for (const batch of batches) ranks.push(await scorer.ranks(batch, batch.targets));
    return ranks;
  };
  const users = Int32Array.from(batches.flatMap(batch => [...batch.users]));
  const measure = (ranks: number[]) => metricOf({ ranks: Int32Array.from(ranks), users, items: source.items }, metric);
  const crossed = async (withModel: boolean): Promise<number> => {
    const [ofEven, ofOdd] = [await rank(fit([halves[0]], withModel)), await rank(fit([halves[1]], withModel))];
    return measure(
      batches.flatMap((batch, b) => Array.from(batch.users, (user, c) => (user % 2 === 0 ? ofOdd : ofEven)[b]![c]!)),
    );
  };
  const without = await crossed(false);
  const together = ranked ? await crossed(true) : without;
  return {
    weights: fit(halves, ranked !== undefined && together >= without),
    cases: halves[0].cases + halves[1].cases,
    alone: measure((await rank(alone)).flatMap(ranks => [...ranks])),
    together,
    without,
  };
}

function onlyModel(weight: number): PriorWeights {
  const features = Float64Array.from(FEATURES, name => (name === 'model' ? weight : 0));
  return namedWeights(features, new Float64Array(COMPONENTS.length).fill(1 / COMPONENTS.length));
}
