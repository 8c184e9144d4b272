// Samples of the same few steps, gathered from all ranks: how each rank's time divides, and for the first ranks also ops,
// memory and spans on a common clock.

import { alignClock } from '../dist/comm/align-clock.js';
import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import type { RanksSampled, RunEvent, StepsSampled } from '../events/event.js';
import { rankShares, type StepTimes } from './step-shares.js';

/** Ranks whose ops, memory and spans are logged; of the others only shares are. */
const SHOWN_RANKS = 8;

/** One rank's sample. */
export interface OwnSample {
  sample: StepsSampled;
  times: StepTimes;
  /** Of a step. */
  tokens: number;
  /** When its spans begin, by its own clock. */
  begin: number;
}

/** Collective: every rank has sampled the same steps. `clock` is that of the spans. */
export async function joinSamples(
  ranks: Communicator,
  own: OwnSample,
  clock: () => number,
): Promise<readonly RunEvent[]> {
  const { sample, times, tokens } = own;
  const { offset } = sample.spans ? await alignClock(ranks, clock) : { offset: 0 };
  const shown = ranks.rank < SHOWN_RANKS ? sample : null;
  const all = await gatherJson(ranks, { shown, times, tokens, begin: own.begin - offset });
  const shares = rankShares(all.map(rank => rank.times));
  const joined: RanksSampled = {
    kind: 'ranks',
    step: sample.step,
    steps: sample.steps,
    milliseconds: sample.milliseconds,
    ranks: shares.map((share, rank) => ({ ...share, tokens: all[rank]!.tokens })),
  };
  const first = Math.min(...all.map(({ begin }) => begin));
  return [...all.flatMap(rank => (rank.shown ? [shifted(rank.shown, rank.begin - first)] : [])), joined];
}

/** Shifts the spans of all ranks to a common origin. */
function shifted(sample: StepsSampled, by: number): StepsSampled {
  if (!sample.spans) return sample;
  const tenths = Math.round(by * 10) / 10;
  return {
    ...sample,
    spans: sample.spans.map(([stream, op, lane, start, length]) => [stream, op, lane, start + tenths, length]),
  };
}
