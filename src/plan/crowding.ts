// How much ranks on one host slow each other down: they share caches, memory bandwidth and, if there are more ranks than cores,
// the cores. The factor includes that one rank may compute on a core while another waits for an exchange.

import type { Costs } from './costs.js';
import { type Cluster, predict } from './predict.js';
import type { Workload } from './workload.js';

/** A measured step of several ranks on one host, one lane each. */
export interface MeasuredRanks {
  work: Workload;
  ranks: number;
  seconds: number;
}

/** One factor per number of ranks measured; `host` has the cores they shared. */
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
    // The geometric mean, since errors are relative.
    const mean = factors.reduce((sum, factor) => sum + Math.log(factor), 0) / factors.length;
    return { perCore: ranks / host.coresPerHost, factor: Math.exp(mean) };
  });
}
