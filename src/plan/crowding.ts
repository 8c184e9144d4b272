// By how much longer ranks compute beside each other than one alone: they share caches, memory and, where there are more
// ranks than cores, the cores. What one of them waits for an exchange, another may compute on the same core; that is in it too.

import type { Costs } from './costs.js';
import { type Cluster, predict } from './predict.js';
import type { Workload } from './workload.js';

/** A step of ranks on one host, a lane each. */
export interface MeasuredRanks {
  work: Workload;
  ranks: number;
  seconds: number;
}

/** For each number of ranks that was measured; `host` has the cores that they shared. */
export function fitCrowding(
  costs: Costs,
  host: Omit<Cluster, 'hosts' | 'ranksPerHost'>,
  measured: readonly MeasuredRanks[],
): Costs['crowding'] {
  const counts = [...new Set(measured.map(({ ranks }) => ranks))].sort((a, b) => a - b);
  return counts.map(ranks => {
    const factors = measured
      .filter(one => one.ranks === ranks)
      .map(({ work, seconds }) => {
        const layout = { ranks, groupSize: ranks, lanesPerRank: 1, staleness: 0 } as const;
        const cluster = { ...host, hosts: 1, ranksPerHost: ranks };
        const { computeSeconds, exposedSeconds } = predict({ ...costs, crowding: [] }, work, cluster, layout);
        return Math.max(0.1, (seconds - exposedSeconds) / computeSeconds);
      });
    // Errors are relative: the mean of logarithms.
    const mean = factors.reduce((sum, factor) => sum + Math.log(factor), 0) / factors.length;
    return { perCore: ranks / host.coresPerHost, factor: Math.exp(mean) };
  });
}
