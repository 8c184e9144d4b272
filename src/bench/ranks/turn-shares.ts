// How the ranks' time divides over the rounds of a benchmark, under the names of its JSON output.

import type { Span } from '../../events/chrome-trace.js';
import { isExchange, meanShares, rankShares, type StepTimes, timesOf, unionLength } from '../../train/step-shares.js';

/** Seconds of one rank's round. */
export interface TurnTimes extends StepTimes {
  /** An exchange was running, hidden or not. */
  comm: number;
}

/** They add up to one, except `comm`, which overlaps with computing. */
export interface TurnShares {
  compute_ratio: number;
  exposed_comm: number;
  wait: number;
  free: number;
  comm: number;
}

/** `wall` in seconds. */
export function turnTimes(spans: readonly Span[], wall: number): TurnTimes {
  const exchanges = spans.filter(isExchange);
  const comm = unionLength(exchanges.map(({ start, end }): readonly [number, number] => [start, end])) / 1e6;
  return { ...timesOf(spans, wall), comm };
}

/** Over all ranks and rounds. */
export function turnShares(turns: readonly (readonly TurnTimes[])[]): TurnShares {
  const all = turns.flat();
  const walls = all.map(({ wall }) => wall);
  const { computing, exposed, waiting, free } = meanShares(turns.flatMap(rankShares), walls)!;
  const comm = all.reduce((sum, turn) => sum + turn.comm, 0) / walls.reduce((sum, wall) => sum + wall, 0);
  return { compute_ratio: computing, exposed_comm: exposed, wait: waiting, free, comm };
}
