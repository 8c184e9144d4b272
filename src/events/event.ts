// Everything a run logs while it runs, one JSON object per line in `events.jsonl`. Progress line, report and dashboard read
// only these events.

/** The machine that a run was computed on. */
export interface MachineFacts {
  cpu: string;
  cores: number;
  memoryBytes: number;
  /** Operating system and architecture. */
  system: string;
  node: string;
  /** Instruction set of the kernels. */
  isa: string;
}

export interface RunStarted {
  kind: 'run';
  step: number;
  /** Short description of data and model, for readers of an old run. */
  data: { users: number; items: number; trainTokens: number; fingerprint: string };
  model: { kind: string; denseParameters: number; tableParameters: number };
  config: unknown;
  threads: number;
  /** The fields below are absent in logs of earlier versions. */
  machine?: MachineFacts;
  totalSteps?: number;
  /** FMA peak in FLOP/s. */
  peakFlops?: number;
}

export interface StepDone {
  kind: 'step';
  step: number;
  epoch: number;
  loss: number;
  lr: number;
  tokens: number;
  /** Since the last step event. */
  tokensPerSecond: number;
  /** Useful FLOPs relative to the FMA peak measured at the start of the run. */
  mfu: number;
  /** The same with FLOPs as counted by the TurboGR paper; absent for a custom model. */
  mfuPaper?: number;
  /** Per trained token, on some steps: distinct unmasked draws, masked draws, and repeated draws. */
  negatives?: { effective: number; masked: number; repeated: number };
  /** With staleness 1 or 2: share of the item rows read that were stale, that is, changed by an update not yet seen. */
  stale?: number;
  /** With staleness exact: share of the item rows read that were sent again after the update. */
  resent?: number;
  /** On several ranks: tokens of the fullest rank relative to the mean, minus 1. */
  spread?: number;
}

export interface EpochDone {
  kind: 'epoch';
  step: number;
  epoch: number;
  /** Mean loss per token over the epoch. */
  loss: number;
  tokens: number;
  seconds: number;
  mfu: number;
  /** Seconds per token and per token pair of a sequence, fitted to the steps so far. */
  cost: { a: number; b: number };
}

export interface Validated {
  kind: 'validation';
  step: number;
  epoch: number;
  metric: string;
  value: number;
  best: boolean;
  seconds: number;
}

/** Baselines on the validation events, by the validation metric. */
export interface BaselinesRanked {
  kind: 'baselines';
  step: number;
  metric: string;
  values: Record<string, number>;
  seconds: number;
}

/** Cost of one op per step. */
export interface OpCost {
  stage: string;
  op: string;
  stream: string;
  calls: number;
  milliseconds: number;
}

/** A periodic sample of a few steps. All figures are means per step. */
export interface StepsSampled {
  kind: 'sample';
  step: number;
  /** How many steps were looked at. */
  steps: number;
  rank: number;
  /** Wall clock. */
  milliseconds: number;
  ops: readonly OpCost[];
  /** Milliseconds in which a stream is busy. */
  busy: Record<string, number>;
  /** Milliseconds of communication during which nothing is computed. */
  exposed: number;
  /** Bytes, by owner. */
  memory: Record<string, number>;
  /** On some samples, the individual spans: [stream, op, lane, start, length] in microseconds. */
  spans?: readonly (readonly [stream: string, op: string, lane: number, start: number, length: number])[];
}

/** Shares of a rank's step time; they add up to one. */
export interface StepShares {
  /** A kernel is running. */
  computing: number;
  /** Exposed communication: bytes move and nothing is computed. */
  exposed: number;
  /** Nothing is computed while the slowest rank still computes. */
  waiting: number;
  /** Neither kernels nor exchanges. */
  free: number;
}

/** How the time of the sampled steps divides, on every rank. */
export interface RanksSampled {
  kind: 'ranks';
  step: number;
  /** How many steps were looked at. */
  steps: number;
  /** Wall time per step. */
  milliseconds: number;
  /** By rank; `tokens` per step. */
  ranks: readonly (StepShares & { tokens: number })[];
}

export interface Checkpointed {
  kind: 'checkpoint';
  step: number;
  path: string;
  seconds: number;
}

export interface Resumed {
  kind: 'resumed';
  step: number;
  from: string;
  refused: readonly { path: string; reason: string }[];
  /** Absent in logs of earlier versions. */
  threads?: number;
  machine?: MachineFacts;
}

export interface Finished {
  kind: 'finished';
  step: number;
  reason: 'epochs' | 'steps' | 'patience' | 'interrupted';
  digest: string;
}

/** Training ended with an error. */
export interface Failed {
  kind: 'failed';
  step: number;
  /** The code of a `UserError`; otherwise 'bug'. */
  code: string;
  message: string;
}

export type RunEvent =
  | RunStarted
  | StepDone
  | StepsSampled
  | RanksSampled
  | EpochDone
  | BaselinesRanked
  | Validated
  | Checkpointed
  | Resumed
  | Finished
  | Failed;

/** An event as stored in the file. */
export type LoggedEvent = RunEvent & { time: string };
