// A step as a list of stages over its lanes. A schedule is an order of them: `plain` finishes one lane after the other on
// one stream; `overlapped` runs sparse work on its own stream, that of the next lane ahead of computing, that of the last
// one behind it. Both give the same bits: streams wait for what they read.
//
//   read      a lane's batch to the device, its negatives drawn
//   exchange  which rows it reads, each once; nothing when it reads the table itself
//   rows      copies of them
//   dense     forward, loss, backward
//   reduce    the lane's gradients added to the step's sum
//   apply     the optimiser, once the sum is complete

import type { StreamName } from '../native/call.js';

export const LANE_STAGES = ['read', 'exchange', 'rows', 'dense', 'reduce'] as const;
export type LaneStage = (typeof LANE_STAGES)[number];
/** In the order of the numbers that spans carry. */
export const STAGES = [...LANE_STAGES, 'apply'] as const;
export type StageName = (typeof STAGES)[number];

export interface ScheduledStage {
  readonly stage: StageName;
  /** Absent for `apply`, which is of the whole step. */
  readonly lane?: number;
  readonly stream: StreamName;
}

export type ScheduleKind = 'plain' | 'overlapped';

const STREAM_OF: Readonly<Record<ScheduleKind, Readonly<Record<StageName, StreamName>>>> = {
  plain: {
    read: 'compute',
    exchange: 'compute',
    rows: 'compute',
    dense: 'compute',
    reduce: 'compute',
    apply: 'compute',
  },
  overlapped: {
    read: 'sparse',
    exchange: 'sparse',
    rows: 'sparse',
    dense: 'compute',
    reduce: 'sparse',
    apply: 'compute',
  },
};

/** The stages of a step over these lanes, in the order in which they are enqueued. */
export function schedule(kind: ScheduleKind, lanes: readonly number[]): ScheduledStage[] {
  const stages: ScheduledStage[] = [];
  const put = (lane: number | undefined, names: readonly LaneStage[]): void => {
    if (lane === undefined) return;
    for (const stage of names) stages.push({ stage, lane, stream: STREAM_OF[kind][stage] });
  };
  const ahead = ['read', 'exchange', 'rows'] as const;
  if (kind === 'plain') {
    for (const lane of lanes) put(lane, LANE_STAGES);
  } else {
    put(lanes[0], ahead);
    lanes.forEach((lane, i) => {
      put(lanes[i + 1], ahead); // before the reduction, which waits for this lane's gradients
      put(lane, ['dense', 'reduce']);
    });
  }
  stages.push({ stage: 'apply', stream: STREAM_OF[kind].apply });
  return stages;
}
