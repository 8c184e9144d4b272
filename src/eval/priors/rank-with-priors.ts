// Ranks the cases of an evaluation with a model and its priors, or with the priors alone; same result type as rank-cases.ts.

import { singleGroup } from '../../dist/shard/rank-groups.js';
import type { Device } from '../../native/device.js';
import type { Model } from '../../nn/model.js';
import type { CaseOptions } from '../cases.js';
import { listsOf } from '../lists.js';
import { joinRanks, type ModelRanks, rankBatch, type RankedBatch } from '../rank-cases.js';
import type { LogPriors } from './log-priors.js';
import { logitRows, priorCases } from './prior-cases.js';
import { PriorScorer } from './prior-scorer.js';
import type { PriorWeights } from '../../config/prior-weights.js';

export interface PriorRankOptions extends CaseOptions {
  device: Device;
  log: LogPriors;
  weights: PriorWeights;
  /** Absent: the priors alone. */
  ranked?: Model;
  /** Also return this many top items of every case. */
  listLength?: number;
}

/** Of all cases, on every rank. Collective. */
export async function rankWithPriors(options: PriorRankOptions): Promise<ModelRanks> {
  const { device, log, weights, ranked, listLength = 0, ...which } = options;
  const { source, ranks = singleGroup() } = which;
  using scorer = new PriorScorer(device, log, { weights, logits: await logitRows(ranked, ranks) });
  const parts: RankedBatch[] = [];
  for await (const { users, targets, ...cases } of priorCases(which, ranked)) {
    using scan = await scorer.scan(cases);
    const last = cases.histories.map(history => history.at(-1));
    parts.push(await rankBatch(scan, { users, targets, left: listsOf(cases.excluded), last }, listLength));
  }
  return await joinRanks(ranks.world, parts, source.items);
}
