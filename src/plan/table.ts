// Prints a plan: the choice and its reasons, and predictions for 1 to 1,024 ranks.

import { formatShare, table } from '../util/terminal.js';
import { type Choice, layoutsOf, type PlanInput } from './choose.js';
import { type Cluster, predict, type Prediction } from './predict.js';

const MOST_RANKS = 1024;

export interface PlanRow extends Prediction {
  /** Whether the prediction goes beyond the calibrated machine. */
  simulated: boolean;
}

/** As many hosts of the cluster's kind as the ranks need. */
function clusterOf(cluster: Cluster, ranks: number): Cluster {
  const ranksPerHost = Math.min(ranks, cluster.ranksPerHost);
  return { ...cluster, ranksPerHost, hosts: Math.ceil(ranks / ranksPerHost) };
}

/** Every layout for 1, 2, 4, ... 1,024 ranks. */
export function planRows(input: PlanInput): PlanRow[] {
  const counts = Array.from({ length: Math.log2(MOST_RANKS) + 1 }, (_, i) => 2 ** i);
  return counts.flatMap(ranks => {
    const cluster = clusterOf(input.cluster, ranks);
    return layoutsOf({ ...input, cluster }, ranks).map(layout => ({
      ...predict(input.costs, input.work, cluster, layout),
      simulated: ranks > 1,
    }));
  });
}

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;

export function describePlan(
  { costs, cluster, lanesPerRank }: PlanInput,
  chosen: Choice,
  rows: readonly PlanRow[],
): string {
  const { best, reasons } = chosen;
  const { linkBytes } = best;
  const total = Object.values(linkBytes).reduce((sum, bytes) => sum + bytes, 0);
  const lines = [
    `${best.ranks} ranks on ${cluster.hosts} hosts; costs measured on: ${costs.machine}. All figures are simulated.`,
    '',
    `step ${(best.stepSeconds * 1e3).toFixed(1)} ms, computing ${formatShare(best.computeRatio, 1)}, linearity ${best.linearity.toFixed(3)}, ${gigabytes(best.memoryPerRank)} per rank`,
    `over a host's link per step ${megabytes(total)} MB: rows ${megabytes(linkBytes.rows)}, gradient rows ${megabytes(linkBytes.gradientRows)}, between groups ${megabytes(linkBytes.betweenGroups)}, dense ${megabytes(linkBytes.dense)}`,
    '',
    ...reasons,
    `train with: --group-size ${best.groupSize} --set batch.lanes=${best.ranks * lanesPerRank}${best.staleness === 0 ? '' : ` --set staleness=${best.staleness}`}`,
    '',
  ];
  const shown = rows.filter(
    row => row.groupSize === row.ranks || row.groupSize === Math.min(row.ranks, cluster.ranksPerHost),
  );
  const cells = shown.map(row => [
    String(row.ranks),
    String(row.groupSize),
    String(row.staleness),
    (row.stepSeconds * 1e3).toFixed(1),
    formatShare(row.computeRatio, 1),
    row.linearity.toFixed(3),
    gigabytes(row.memoryPerRank),
    megabytes(Object.values(row.linkBytes).reduce((sum, bytes) => sum + bytes, 0)),
  ]);
  return [
    ...lines,
    table(['ranks', 'group', 'staleness', 'ms', 'computing', 'linearity', 'per rank', 'link MB'], cells),
  ].join('\n');
}
