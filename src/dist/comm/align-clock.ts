// Clock offsets between ranks, from the begin and end times of common gathers: no rank ends a gather before all have begun
// it. So each gather bounds the offset of two clocks from both sides, and several gathers tighten the bounds.

import { type Communicator, gatherJson } from './communicator.js';

export interface ClockOffset {
  /** This rank's clock minus that of rank 0. */
  offset: number;
  /** Bound on the error. */
  error: number;
}

/** When a rank began and ended a gather, by its own clock. */
type Visit = readonly [begin: number, end: number];

const GATHERS = 32;

/** Collective; in the unit of `now`. */
export async function alignClock(ranks: Communicator, now: () => number): Promise<ClockOffset> {
  if (ranks.size === 1) return { offset: 0, error: 0 };
  const visits: Visit[] = [];
  for (let i = 0; i < GATHERS; i++) {
    const begin = now();
    await ranks.gather(new Uint8Array(1));
    visits.push([begin, now()]);
  }
  const [first] = await gatherJson(ranks, visits);
  return ranks.rank === 0 ? { offset: 0, error: 0 } : offsetFrom(first!, visits);
}

export function offsetFrom(theirs: readonly Visit[], own: readonly Visit[]): ClockOffset {
  const least = Math.max(...own.map(([begin], i) => begin - theirs[i]![1]));
  const most = Math.min(...own.map(([, end], i) => end - theirs[i]![0]));
  return { offset: (least + most) / 2, error: (most - least) / 2 };
}
