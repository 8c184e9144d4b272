// Shares of the ranks' time over the turns of a benchmark, under the names that its JSON has.

import { meanShares, rankShares, type StepTimes } from '../../train/step-shares.js';

/** They add up to one. */
export interface TurnShares {
  compute_ratio: number;
  exposed_comm: number;
  wait: number;
  free: number;
}

/** Over all ranks of all turns. */
export function turnShares(turns: readonly (readonly StepTimes[])[]): TurnShares {
  const walls = turns.flat().map(({ wall }) => wall);
  const { computing, exposed, waiting, free } = meanShares(turns.flatMap(rankShares), walls)!;
  return { compute_ratio: computing, exposed_comm: exposed, wait: waiting, free };
}
