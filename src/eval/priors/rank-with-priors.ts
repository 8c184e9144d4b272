// A model with its priors, or the priors alone, on the cases of an evaluation: the same figures as rank-cases.ts gives.

import type { CaseOptions } from '../cases.js';
import { joined, type ModelRanks } from '../rank-cases.js';
import type { Device } from '../../native/device.js';
import type { Model } from '../../nn/model.js';
import type { LogPriors } from './log-priors.js';
import { logitRows, priorCases } from './prior-cases.js';
import { PriorScorer } from './prior-scorer.js';
import type { PriorWeights } from './weights.js';

export interface PriorRankOptions extends CaseOptions {
  device: Device;
  log: LogPriors;
  weights: PriorWeights;
  /** Absent: the priors alone. */
  ranked?: Model;
  /** Also return this many top items of every case. */
  listLength?: number;
}

export async function rankWithPriors(options: PriorRankOptions): Promise<ModelRanks> {
  const { device, log, weights, ranked, listLength = 0, ...which } = options;
  using scorer = new PriorScorer(device, log, { weights, logits: await logitRows(ranked) });
  const parts: { users: Int32Array; targets: Int32Array; ranks: Int32Array; lists: Int32Array }[] = [];
  let selfFirst = 0;
  for await (const { users, targets, ...cases } of priorCases(which, ranked)) {
    const ranks = await scorer.ranks(cases, targets);
    const { ids: lists } = await scorer.lists(cases, listLength);
    if (listLength > 0) {
      const nothing = new Set<number>();
      const firsts = await scorer.lists({ ...cases, excluded: cases.histories.map(() => nothing) }, 1);
      firsts.ids.forEach((item, c) => {
        if (item === cases.histories[c]!.at(-1)) selfFirst++;
      });
    }
    parts.push({ users, targets, ranks, lists });
  }
  return {
    items: which.source.items,
    users: joined(parts.map(part => part.users)),
    targets: joined(parts.map(part => part.targets)),
    ranks: joined(parts.map(part => part.ranks)),
    lists: joined(parts.map(part => part.lists)),
    selfFirst,
  };
}
