// A step as a list of stages over its lanes. A schedule is an order of stages; all give the same bits, since streams wait for
// what they read.
//
//   plain       lanes one after the other on one stream
//   ahead       the next lanes are read while one computes: for a single rank. Reductions run between lanes on all threads;
//               concurrently they would only take cores from computing (8 lanes of 2k tokens, 2 cores: 0.93 of one
//               lane's rate, 0.96 between lanes)
//   overlapped  reductions run concurrently with computing too: for several ranks, which send sums as soon as they are ready
//
//   read      upload a lane's batch, draw its negatives
//   exchange  find the distinct rows it reads; nothing if it reads the table directly
//   rows      fetch copies of them from their owners
//   dense     forward, loss, backward
//   reduce    add the lane's gradients to the step's sum
//   apply     run the optimiser once the sum is complete
//
// If rows are fetched ahead of the updates, the first three stages run one or two steps before the others. Ranks fetch rows
// from each other in rounds: a rank without a lane in a round still answers the others.

import type { StreamName } from '../native/call.js';

export const LANE_STAGES = ['read', 'exchange', 'rows', 'dense', 'reduce'] as const;
export type LaneStage = (typeof LANE_STAGES)[number];
/** In the order of the stage numbers in spans. */
export const STAGES = [...LANE_STAGES, 'apply'] as const;
export type StageName = (typeof STAGES)[number];

/** A lane, or undefined if the rank has none in this round and only answers. */
export interface Round {
  readonly number: number;
  readonly lane: number | undefined;
}

export interface ScheduledStage {
  readonly stage: LaneStage;
  readonly round: Round;
  readonly stream: StreamName;
}

export type ScheduleKind = 'plain' | 'ahead' | 'overlapped';

export function scheduleKind(overlap: boolean, ranks: number): ScheduleKind {
  if (!overlap) return 'plain';
  return ranks > 1 ? 'overlapped' : 'ahead';
}

const STREAM_OF: Readonly<Record<ScheduleKind, Readonly<Record<StageName, StreamName>>>> = {
  plain: {
    read: 'compute',
    exchange: 'compute',
    rows: 'compute',
    dense: 'compute',
    reduce: 'compute',
    apply: 'compute',
  },
  ahead: {
    read: 'sparse',
    exchange: 'sparse',
    rows: 'sparse',
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

export function streamOf(kind: ScheduleKind, stage: StageName): StreamName {
  return STREAM_OF[kind][stage];
}

const AHEAD = ['read', 'exchange', 'rows'] as const;
const COMPUTE = ['dense', 'reduce'] as const;

function stagesOf(kind: ScheduleKind, round: Round, names: readonly LaneStage[]): ScheduledStage[] {
  const own = round.lane === undefined ? names.filter(name => name === 'rows' || name === 'dense') : names;
  return own.map(stage => ({ stage, round, stream: STREAM_OF[kind][stage] }));
}

/** The stages of a step's rounds in enqueue order, with up to this many rounds in flight. */
export function schedule(kind: ScheduleKind, rounds: readonly Round[], underWay: number): ScheduledStage[] {
  if (kind === 'plain') return rounds.flatMap(round => stagesOf(kind, round, LANE_STAGES));
  const ahead = underWay - 1;
  const stages = fetchStages(kind, rounds.slice(0, ahead));
  rounds.forEach((round, i) => {
    const next = rounds[i + ahead];
    if (next) stages.push(...stagesOf(kind, next, AHEAD)); // before the reduction, which waits for this lane's gradients
    stages.push(...stagesOf(kind, round, COMPUTE));
  });
  return stages;
}

/** The stages that run ahead of the updates. */
export function fetchStages(kind: ScheduleKind, rounds: readonly Round[]): ScheduledStage[] {
  return rounds.flatMap(round => stagesOf(kind, round, AHEAD));
}

/** The remaining stages, once rows have arrived. */
export function computeStages(kind: ScheduleKind, rounds: readonly Round[]): ScheduledStage[] {
  return rounds.flatMap(round => stagesOf(kind, round, COMPUTE));
}
