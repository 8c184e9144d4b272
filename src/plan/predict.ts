// Predicts a step on W ranks: its time, the traffic on each link, the memory per rank. Tables are sharded over groups of I
// ranks (HSP); I = W is one flat group. Ranks of a host are consecutive.
//
// Hidden: rows of the next lane are fetched while one computes; dense gradients are sent, and parameters updated and sent back, while
// earlier blocks are still in backward (with clipping, parameters wait for the norm of all gradients). Exposed at staleness 0: the first lane's rows, gradient rows and their exchange between groups. `exact` fetches
// early and exposes the rows sent again and their gradients (with clipping, the gradients of all rows); staleness 1 and 2 expose
// only what exceeds the compute time.

import type { Costs } from './costs.js';
import { laneSeconds } from './fit.js';
import type { Workload } from './workload.js';

export interface Cluster {
  hosts: number;
  coresPerHost: number;
  ranksPerHost: number;
  /** Bits per second of a host's link, in each direction. */
  bitsPerSecond: number;
  memoryPerHost: number;
}

export type Staleness = 0 | 1 | 2 | 'exact';

export interface Layout {
  ranks: number;
  groupSize: number;
  lanesPerRank: number;
  staleness: Staleness;
}

export interface Prediction extends Layout {
  stepSeconds: number;
  computeSeconds: number;
  exposedSeconds: number;
  computeRatio: number;
  /** Throughput per rank relative to a single rank. */
  linearity: number;
  /** Bytes sent over a host's link per step. */
  linkBytes: { rows: number; gradientRows: number; betweenGroups: number; dense: number };
  memoryPerRank: number;
  /** Share of rows read ahead of an update that changes them: stale, or sent again. */
  alpha: number;
}

/** Backward's share of forward and backward. */
const BACKWARD = 2 / 3;
/** Memory of a process without a model: Node, the addon, MPI buffers. */
const BASE_MEMORY = 200e6;
/** Exchanges per fetch, and per reduction of gradient rows: counts, ids, rows. `exact` agrees on the first two in advance. */
const FETCH_EXCHANGES = 3;
/** Host gathers before gradients are summed: lengths, then bytes. */
const NOTES = 2;

export function predict(costs: Costs, work: Workload, cluster: Cluster, layout: Layout): Prediction {
  const { ranks, groupSize, lanesPerRank: lanes, staleness } = layout;
  const perHost = Math.min(cluster.ranksPerHost, ranks);
  const crowd = Math.max(1, perHost / cluster.coresPerHost);
  const rowBytes = work.width * 4;
  const crowded = crowding(costs, perHost, cluster.coresPerHost);
  const compute = lanes * laneSeconds(costs.compute, work) * crowd * crowded.factor;
  const away = (members: number, here: number) => Math.max(0, members - here) / Math.max(1, members);

  // Rows of one lane fetched from other ranks of the group, and those of them from other hosts.
  const inGroup = Math.min(groupSize, perHost);
  const fetchedRow = work.width * work.fetchedBytes;
  const fetched = work.uniqueRows(1) * (1 - 1 / groupSize) * fetchedRow;
  const fetchedFar = work.uniqueRows(1) * away(groupSize, inGroup) * fetchedRow;
  const returned = work.uniqueRows(lanes) * rowBytes;
  const groups = ranks / groupSize;
  const shard = (work.uniqueRows(lanes * groupSize) / groupSize) * rowBytes * (groups - 1);
  const groupsHere = Math.max(1, perHost / groupSize);
  const shardFar = shard * (groups > 1 ? (groups - groupsHere) / (groups - 1) : 0);
  const dense = 2 * 4 * work.denseParameters * (1 - 1 / ranks);
  const denseFar = 2 * 4 * work.denseParameters * away(ranks, perHost);

  const link = { ...costs.link, rate: (cluster.bitsPerSecond / 8) * costs.link.share };
  /** All ranks of a host share its link; what stays on the host goes through memory. */
  const time = (exchanges: number, members: number, near: number, far: number): number => {
    if (members === 1) return 0;
    const over = far > 0 ? link : costs.memory;
    const start = exchanges * (over.latency + (members - 2) * over.peer) * crowd;
    return start + ((near - far) / costs.memory.rate) * crowd + (far * perHost) / link.rate;
  };
  const fetch = time(FETCH_EXCHANGES, groupSize, fetched, fetchedFar);
  /** Seconds to send a share of the gradient rows to the owners and then between groups. */
  const giveBack = (share: number, exchanges = FETCH_EXCHANGES): number =>
    time(exchanges, groupSize, share * returned * (1 - 1 / groupSize), share * returned * away(groupSize, inGroup)) +
    time(exchanges, groups, share * shard, share * shardFar);
  const denseTime = time(2 * work.denseTensors, ranks, dense, denseFar);
  const notes = time(NOTES, ranks, 0, 0);

  const laneCompute = compute / lanes;
  const backward = BACKWARD * laneCompute;
  const behind = (seconds: number, computing: number) => Math.max(seconds / work.blocks, seconds - computing);
  const rowsWait = staleness === 0 && groupSize > 1;
  const half = denseTime / 2;
  const denseBare = work.clips
    ? behind(half, backward) + (rowsWait ? half : behind(half, laneCompute - backward))
    : behind(denseTime, backward);
  const laterFetches = (lanes - 1) * Math.max(0, fetch - laneCompute);
  const changed = (steps: number) => work.collisions(steps * ranks * lanes);
  const resend = time(1, groupSize, changed(1) * fetched, changed(1) * fetchedFar) * lanes;
  const hidden = Math.max(0, lanes * fetch + giveBack(1) - compute);
  const sparse =
    staleness === 0
      ? fetch + laterFetches + giveBack(1)
      : staleness === 'exact'
        ? (work.clips ? giveBack(1) : giveBack(changed(1), 1)) + resend + hidden
        : hidden;
  const exposed = ranks === 1 ? 0 : sparse + denseBare + notes + crowded.step;
  const step = compute + exposed;
  const alone = lanes * laneSeconds(costs.compute, work);
  return {
    ...layout,
    stepSeconds: step,
    computeSeconds: compute,
    exposedSeconds: exposed,
    computeRatio: compute / step,
    linearity: alone / step,
    linkBytes: {
      rows: fetchedFar * lanes * perHost,
      gradientRows: returned * away(groupSize, inGroup) * perHost,
      betweenGroups: shardFar * perHost,
      dense: denseFar * perHost,
    },
    memoryPerRank: memoryOf(work, layout),
    alpha: staleness === 0 ? 0 : changed(staleness === 'exact' ? 1 : staleness),
  };
}

/** Linear between the numbers of ranks per core that were measured, constant beyond the last. */
function crowding({ crowding: points }: Costs, ranks: number, cores: number): { factor: number; step: number } {
  const perCore = ranks / cores;
  let from = { perCore: 0, factor: 1, step: 0 };
  if (ranks === 1) return from;
  for (const to of points) {
    if (perCore <= to.perCore) {
      const way = (perCore - from.perCore) / (to.perCore - from.perCore);
      const between = (a: number, b: number) => a + way * (b - a);
      return { factor: between(from.factor, to.factor), step: between(from.step, to.step) };
    }
    from = to;
  }
  return from;
}

/** Bytes: tables and their state, dense parameters with gradient and moments, activations of a lane, rows in flight. */
function memoryOf(work: Workload, { ranks, groupSize, staleness }: Layout): number {
  const table = (work.rows / groupSize) * (work.width + work.rowState) * 4;
  const dense = work.denseParameters * 4 * (2 + 2 / ranks);
  const lane = work.tokens * work.width * work.blocks * work.activations * 4;
  const ahead = staleness === 0 ? 2 : staleness === 'exact' ? 3 : 2 + staleness;
  const rows = ahead * 2 * work.uniqueRows(1) * work.width * 4;
  return BASE_MEMORY + table + dense + lane + rows;
}
