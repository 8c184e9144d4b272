// Ranks the cases of an evaluation by a baseline. It uses the whole history, even if the model reads only a part.

import { joinColumns } from '../dist/comm/gather-columns.js';
import { singleGroup } from '../dist/shard/rank-groups.js';
import type { Baseline } from './baselines.js';
import { type CaseOptions, evaluationCases, wholeHistory } from './cases.js';
import type { RankedCases } from './metrics.js';

export interface BaselineOptions extends CaseOptions {
  baseline: Baseline;
}

/** Of all cases, on every rank. Collective. */
export async function rankBaseline({ baseline, ...options }: BaselineOptions): Promise<RankedCases> {
  const ranks: number[] = [];
  const users: number[] = [];
  for (const { batch, targets, excluded, excludedOffsets } of evaluationCases(options)) {
    targets.forEach((target, c) => {
      const left = new Set(excluded.subarray(excludedOffsets[c], excludedOffsets[c + 1]));
      ranks.push(baseline.rank(wholeHistory(options.source, batch, c), target, left));
      users.push(batch.users[c]!);
    });
  }
  const { world } = options.ranks ?? singleGroup();
  const all = await joinColumns(world, { ranks: Int32Array.from(ranks), users: Int32Array.from(users) });
  return { ...all, items: options.source.items };
}
