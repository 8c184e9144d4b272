// Fits the cost constants to measurements. Compute constants: non-negative least squares of relative errors.

import type { Costs } from './costs.js';
import type { Workload } from './workload.js';

/** A lane that one rank of one thread computed. */
export interface MeasuredLane {
  work: Workload;
  seconds: number;
}

type ComputeCosts = Costs['compute'];
const NAMES = ['flop', 'narrow', 'lossFlop', 'rowByte', 'parameter', 'lane'] as const satisfies (keyof ComputeCosts)[];

/** The quantity that each constant multiplies. */
export function featuresOf(work: Workload): Record<keyof ComputeCosts, number> {
  return {
    flop: work.blockFlops,
    narrow: work.blockFlops / work.width,
    lossFlop: work.lossFlops,
    rowByte: work.uniqueRows(1) * work.width * 4,
    parameter: work.denseParameters,
    lane: 1,
  };
}

export function laneSeconds(costs: ComputeCosts, work: Workload): number {
  const features = featuresOf(work);
  return NAMES.reduce((sum, name) => sum + costs[name] * features[name], 0);
}

/** Coordinate descent sweeps; it converges after a few hundred. */
const SWEEPS = 20_000;

/** Non-negative x with the least sum of squares of `1 - (features . x) / seconds` over the runs: relative errors. */
export function fitNonNegative(runs: readonly { features: readonly number[]; seconds: number }[]): number[] {
  const rows = runs.map(({ features, seconds }) => features.map(value => value / seconds));
  const scale = (runs[0]?.features ?? []).map((_, k) => Math.hypot(...rows.map(row => row[k]!)) || 1);
  const found = scale.map(() => 0);
  const left = rows.map(() => 1);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (let k = 0; k < found.length; k++) {
      const column = rows.map(row => row[k]! / scale[k]!);
      const best = Math.max(0, found[k]! + column.reduce((sum, value, i) => sum + value * left[i]!, 0));
      const change = best - found[k]!;
      found[k] = best;
      column.forEach((value, i) => (left[i] = left[i]! - change * value));
    }
  }
  return found.map((value, k) => value / scale[k]!);
}

export function fitCompute(lanes: readonly MeasuredLane[]): ComputeCosts {
  const runs = lanes.map(({ work, seconds }) => {
    const features = featuresOf(work);
    return { features: NAMES.map(name => features[name]), seconds };
  });
  const [flop, narrow, lossFlop, rowByte, parameter, lane] = fitNonNegative(runs);
  return { flop: flop!, narrow: narrow!, lossFlop: lossFlop!, rowByte: rowByte!, parameter: parameter!, lane: lane! };
}

/** Exchanges among a given number of ranks. */
export interface MeasuredExchange {
  /** Seconds of an empty exchange. */
  latency: number;
  /** Bytes per second sent by a rank. */
  rate: number;
}

export interface Measurements {
  machine: string;
  /** FMA peak of a core while the lanes were measured, FLOP/s. */
  peak: number;
  /** Cores of the host, which four ranks may have to share. */
  cores: number;
  lanes: readonly MeasuredLane[];
  /** Two and four ranks on one host. */
  two: MeasuredExchange;
  four: MeasuredExchange;
  /** Two ranks over a link with this nominal rate in bits per second. */
  link?: (MeasuredExchange & { bitsPerSecond: number }) | undefined;
}

/** Assumed for a link that was not measured: TCP's share of the rate, and a round trip in a data centre. */
const USUAL_LINK = { latency: 1e-4, share: 0.94 };

export function fitCosts({ machine, peak, cores, lanes, two, four, link }: Measurements): Costs {
  const crowd = Math.max(1, 4 / cores);
  const peer = Math.max(0, (four.latency / crowd - two.latency) / 2);
  const reached = link && { latency: link.latency, share: Math.min(1, link.rate / (link.bitsPerSecond / 8)) };
  return {
    machine,
    peak,
    crowding: [],
    compute: fitCompute(lanes),
    memory: { latency: two.latency, peer, rate: two.rate },
    link: { ...(reached ?? USUAL_LINK), peer },
  };
}
