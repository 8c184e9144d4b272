// Where the time of a rank's step goes, from the spans of its streams: computing, communication that nothing hides,
// waiting for the slowest rank, and nothing at all.

import type { Span } from '../../events/chrome-trace.js';

/** Seconds of one rank's step. */
export interface StepTimes {
  wall: number;
  /** Some kernel ran. */
  busy: number;
  /** No kernel ran, an exchange did. */
  bare: number;
}

/** Parts of the time of a step; they add up to one. */
export interface StepShares {
  compute_ratio: number;
  exposed_comm: number;
  wait: number;
  free: number;
}

type Interval = readonly [start: number, end: number];

/** Length of the union. */
export function unionLength(intervals: readonly Interval[]): number {
  let [total, reached] = [0, Number.NEGATIVE_INFINITY];
  for (const [start, end] of [...intervals].sort(([a], [b]) => a - b)) {
    total += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return total;
}

/** Spans of one step; `wall` in seconds. */
export function timesOf(spans: readonly Span[], wall: number): StepTimes {
  const intervals = (of: (span: Span) => boolean) => spans.filter(of).map(({ start, end }): Interval => [start, end]);
  const busy = unionLength(intervals(({ stream }) => stream !== 'comm')) / 1e6;
  const all = unionLength(intervals(() => true)) / 1e6;
  return { wall, busy, bare: all - busy };
}

/**
 * Shares over the steps of all ranks: `steps[rank][step]`. A rank waits for as long as the slowest one computes beyond it, as
 * far as it spends that time in exchanges; what is left of them is exposed communication.
 */
export function sharesOf(steps: readonly (readonly StepTimes[])[]): StepShares {
  const sums = { wall: 0, busy: 0, bare: 0, wait: 0 };
  for (const [step] of steps[0]!.entries()) {
    const times = steps.map(rank => rank[step]!);
    const slowest = Math.max(...times.map(({ busy }) => busy));
    for (const { wall, busy, bare } of times) {
      sums.wall += wall;
      sums.busy += busy;
      sums.bare += bare;
      sums.wait += Math.min(bare, slowest - busy);
    }
  }
  return {
    compute_ratio: sums.busy / sums.wall,
    exposed_comm: (sums.bare - sums.wait) / sums.wall,
    wait: sums.wait / sums.wall,
    free: (sums.wall - sums.busy - sums.bare) / sums.wall,
  };
}
