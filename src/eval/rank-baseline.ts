// A baseline on the cases of an evaluation. It knows the whole history, however little of it the model reads.

import type { Baseline } from './baselines.js';
import { type CaseOptions, evaluationCases, wholeHistory } from './cases.js';
import type { RankedCases } from './metrics.js';

export function rankBaseline({ baseline, ...options }: CaseOptions & { baseline: Baseline }): RankedCases {
  const ranks: number[] = [];
  const users: number[] = [];
  for (const { batch, targets, excluded, excludedOffsets } of evaluationCases(options)) {
    targets.forEach((target, c) => {
      const left = new Set(excluded.subarray(excludedOffsets[c], excludedOffsets[c + 1]));
      ranks.push(baseline.rank(wholeHistory(options.source, batch, c), target, left));
      users.push(batch.users[c]!);
    });
  }
  return { ranks: Int32Array.from(ranks), users: Int32Array.from(users), items: options.source.items };
}
