// How the time of a rank's steps divides, from the spans of its streams: computing, exposed communication, waiting for the
// slowest rank, idle. Defined in docs/clusters.md.

import type { Span } from '../events/chrome-trace.js';
import type { StepShares } from '../events/event.js';

/** Seconds of one rank, over a step or several. */
export interface StepTimes {
  wall: number;
  /** A kernel was running. */
  busy: number;
  /** No kernel was running, but an exchange was. */
  bare: number;
}

/** An exchange between ranks, not a kernel; the stream of exchanges also updates slices of parameters. */
export function isExchange({ stream, op }: Span): boolean {
  return stream === 'comm' && op.startsWith('comm_');
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

/** `wall` in seconds; default: from the first span to the last. */
export function timesOf(spans: readonly Span[], wall = lengthOf(spans) / 1e6): StepTimes {
  const intervals = (of: (span: Span) => boolean) => spans.filter(of).map(({ start, end }): Interval => [start, end]);
  const busy = unionLength(intervals(span => !isExchange(span))) / 1e6;
  const all = unionLength(intervals(() => true)) / 1e6;
  return { wall, busy, bare: all - busy };
}

function lengthOf(spans: readonly Span[]): number {
  const [from, to] = spans.reduce(
    ([first, last], { start, end }) => [Math.min(first, start), Math.max(last, end)],
    [Number.POSITIVE_INFINITY, 0],
  );
  return Math.max(0, to - from);
}

/**
 * Shares of each rank over the same steps. A rank waits for as long as the slowest one computes longer than it does, but no
 * longer than it spends in exchanges; the remaining exchange time is exposed communication.
 */
export function rankShares(ranks: readonly StepTimes[]): StepShares[] {
  const slowest = Math.max(...ranks.map(({ busy }) => busy));
  return ranks.map(({ wall, busy, bare }) => {
    if (wall === 0) return { computing: 0, exposed: 0, waiting: 0, free: 1 };
    const waiting = Math.min(bare, slowest - busy);
    return {
      computing: busy / wall,
      exposed: (bare - waiting) / wall,
      waiting: waiting / wall,
      free: (wall - busy - bare) / wall,
    };
  });
}

/** Weighted mean; undefined without values. */
export function meanShares(shares: readonly StepShares[], weights: readonly number[]): StepShares | undefined {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return undefined;
  const mean = (of: keyof StepShares) => shares.reduce((sum, each, i) => sum + each[of] * weights[i]!, 0) / total;
  return { computing: mean('computing'), exposed: mean('exposed'), waiting: mean('waiting'), free: mean('free') };
}
