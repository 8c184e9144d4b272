// Chooses the layout to train with on a cluster, and says why: the fastest that fits into memory, or the simplest of
// equally fast ones.

import type { Costs } from './costs.js';
import { type Cluster, type Layout, predict, type Prediction, type Staleness } from './predict.js';
import type { Workload } from './workload.js';

export interface PlanInput {
  costs: Costs;
  work: Workload;
  cluster: Cluster;
  lanesPerRank: number;
}

export interface Choice {
  best: Prediction;
  /** One sentence per decision. */
  reasons: string[];
}

const STALENESS: readonly Staleness[] = [0, 'exact', 1];
/** Gains below this are not worth stale rows or a larger group. */
const WORTH = 0.01;

/** Group sizes that divide the ranks: powers of two, a host, everybody. */
export function groupSizes(ranks: number, ranksPerHost: number): number[] {
  const sizes = new Set([ranks, Math.min(ranks, ranksPerHost)]);
  for (let size = 1; size <= ranks; size *= 2) sizes.add(size);
  return [...sizes].filter(size => ranks % size === 0).sort((a, b) => a - b);
}

/** Every layout on all ranks of the cluster. */
export function layoutsOf({ cluster, lanesPerRank }: PlanInput, ranks: number): Layout[] {
  return groupSizes(ranks, cluster.ranksPerHost).flatMap(groupSize =>
    STALENESS.map(staleness => ({ ranks, groupSize, lanesPerRank, staleness })),
  );
}

export function choose(input: PlanInput): Choice {
  const { costs, work, cluster } = input;
  const ranks = cluster.hosts * cluster.ranksPerHost;
  const room = cluster.memoryPerHost / cluster.ranksPerHost;
  const all = layoutsOf(input, ranks).map(layout => predict(costs, work, cluster, layout));
  const fitting = all.filter(({ memoryPerRank }) => memoryPerRank <= room);
  const candidates = fitting.length > 0 ? fitting : all.filter(({ groupSize }) => groupSize === ranks);
  const fastest = Math.min(...candidates.map(({ stepSeconds }) => stepSeconds));
  const near = candidates.filter(({ stepSeconds }) => stepSeconds <= fastest * (1 + WORTH));
  const order = (p: Prediction) => STALENESS.indexOf(p.staleness) * 1e6 + p.memoryPerRank / room;
  const best = near.toSorted((a, b) => order(a) - order(b))[0]!;
  return { best, reasons: reasonsFor(best, { all, fitting, room, input }) };
}

interface Grounds {
  all: readonly Prediction[];
  fitting: readonly Prediction[];
  room: number;
  input: PlanInput;
}

function reasonsFor(best: Prediction, { all, fitting, room, input }: Grounds): string[] {
  const { cluster, lanesPerRank } = input;
  const gb = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  const ms = (p: Prediction | undefined) => (p ? `${(p.stepSeconds * 1e3).toFixed(0)} ms` : 'nothing');
  const same = (wanted: Partial<Layout>) =>
    all.find(p => Object.entries({ ...pick(best), ...wanted }).every(([key, value]) => pick(p)[key] === value));
  const reasons: string[] = [];
  if (fitting.length === 0) {
    reasons.push(
      `No layout fits into ${gb(room)} per rank; one group of all ranks needs least, ${gb(best.memoryPerRank)}.`,
    );
  }
  const flat = same({ groupSize: best.ranks });
  if (best.groupSize < best.ranks) {
    reasons.push(
      `Groups of ${best.groupSize}: rows are fetched inside ${best.groupSize <= cluster.ranksPerHost ? 'a host' : 'a group'}, a step takes ${ms(best)} instead of ${ms(flat)} in one group; a rank holds ${gb(best.memoryPerRank)}.`,
    );
  } else if (best.ranks > 1) {
    const smaller = all.find(p => p.groupSize < best.ranks && p.staleness === best.staleness && p.memoryPerRank > room);
    reasons.push(
      smaller
        ? `One group of all ranks: groups of ${smaller.groupSize} would need ${gb(smaller.memoryPerRank)} per rank, and there are ${gb(room)}.`
        : `One group of all ranks: smaller groups are not faster by ${WORTH * 100} %, and hold more.`,
    );
  }
  if (best.ranks > 1) {
    const synchronous = same({ staleness: 0 });
    reasons.push(
      best.staleness === 0
        ? `Staleness 0: fetching ahead gains less than ${WORTH * 100} %.`
        : `Staleness ${best.staleness}: ${ms(best)} instead of ${ms(synchronous)}.`,
    );
    reasons.push(
      `${best.ranks * lanesPerRank} lanes, ${lanesPerRank} per rank${lanesPerRank > 1 ? ': rows of the next are fetched while one computes' : ''}; ${best.staleness === 0 ? Math.min(2, lanesPerRank) : lanesPerRank + 1} in flight.`,
    );
  }
  return reasons;
}

function pick({ groupSize, staleness }: Layout): Record<string, unknown> {
  return { groupSize, staleness };
}
