// How much ranks on one host slow each other down. They share caches, memory bandwidth and, if there are more ranks than cores,
// the cores: a factor on computing. And every exchange of a step waits until the slowest rank has its turn on a core: seconds
// per step, whatever the model's size.

import type { Costs } from './costs.js';
import { fitNonNegative } from './fit.js';
import { type Cluster, predict } from './predict.js';
import type { Workload } from './workload.js';

/** A measured step of several ranks on one host, one lane each. */
export interface MeasuredRanks {
  work: Workload;
  ranks: number;
  seconds: number;
}

/** One point per number of ranks measured; `host` has the cores they shared. */
export function fitCrowding(
  costs: Costs,
  host: Omit<Cluster, 'hosts' | 'ranksPerHost'>,
  measured: readonly MeasuredRanks[],
): Costs['crowding'] {
  const counts = [...new Set(measured.map(({ ranks }) => ranks))].sort((a, b) => a - b);
  return counts.map(ranks => {
    const runs = measured
      .filter(one => one.ranks === ranks)
      .map(({ work, seconds }) => {
        const layout = { ranks, groupSize: ranks, lanesPerRank: 1, staleness: 0 } as const;
        const cluster = { ...host, hosts: 1, ranksPerHost: ranks };
        const { computeSeconds, exposedSeconds } = predict({ ...costs, crowding: [] }, work, cluster, layout);
        const rest = Math.max(0.1 * seconds, seconds - exposedSeconds);
        return { features: [computeSeconds, 1], seconds: rest };
      });
    const [factor, step] = fitNonNegative(runs);
    return { perCore: ranks / host.coresPerHost, factor: factor!, step: step! };
  });
}
