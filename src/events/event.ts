// Everything a run says about itself while it runs, one JSON object per line in `events.jsonl`. Whoever watches a run
// (progress line, report, dashboard) reads these and nothing else.

/** What a run was computed on. */
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
  /** Short description of data and model, for a person who opens an old run. */
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
  /** Useful FLOPs over the FMA peak measured at the start of the run. */
  mfu: number;
  /** The same as the TurboGR paper counts FLOPs; absent for a custom model. */
  mfuPaper?: number;
  /** Per trained token, on some steps: draws that count once, masked draws, and repetitions of an earlier draw. */
  negatives?: { effective: number; masked: number; repeated: number };
  /** With staleness 1 or 2: share of the item rows read that an update not yet seen had changed. */
  stale?: number;
  /** With staleness exact: share of the item rows read that were sent again after the update. */
  resent?: number;
  /** On several ranks: how many more tokens than the mean the fullest rank has, as a share. */
  spread?: number;
}

export interface EpochDone {
  kind: 'epoch';
  step: number;
  epoch: number;
  /** Mean loss of a token over the epoch. */
  loss: number;
  tokens: number;
  seconds: number;
  mfu: number;
  /** Seconds of a token and of a pair of tokens of one sequence, fitted to the steps so far. */
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

/** What needs no model, on the validation events and by the validation metric. */
export interface BaselinesRanked {
  kind: 'baselines';
  step: number;
  metric: string;
  values: Record<string, number>;
  seconds: number;
}

/** What one op costs in a step. */
export interface OpCost {
  stage: string;
  op: string;
  stream: string;
  calls: number;
  milliseconds: number;
}

/** A look inside a few steps, now and then. All figures are means of a step. */
export interface StepsSampled {
  kind: 'sample';
  step: number;
  /** How many steps were looked at. */
  steps: number;
  rank: number;
  /** Wall clock. */
  milliseconds: number;
  ops: readonly OpCost[];
  /** Milliseconds in which a stream computes or moves bytes. */
  busy: Record<string, number>;
  /** Milliseconds of communication during which nothing is computed. */
  exposed: number;
  /** Bytes, by owner. */
  memory: Record<string, number>;
  /** On some samples, what the streams did one after the other: [stream, op, lane, start, length] in microseconds. */
  spans?: readonly (readonly [stream: string, op: string, lane: number, start: number, length: number])[];
}

/** Parts of the wall clock of steps on a rank; they add up to one. */
export interface StepShares {
  /** Some kernel runs. */
  computing: number;
  /** Nothing is computed while bytes move. */
  exposed: number;
  /** Nothing is computed because the slowest rank still does. */
  waiting: number;
  /** Neither kernels nor exchanges. */
  free: number;
}

/** Where the time of the sampled steps went, on every rank. */
export interface RanksSampled {
  kind: 'ranks';
  step: number;
  /** How many steps were looked at. */
  steps: number;
  /** Wall clock of a step. */
  milliseconds: number;
  /** By rank; `tokens` of a step. */
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
  /** Of a `UserError`; 'bug' otherwise. */
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

/** An event as it stands in the file. */
export type LoggedEvent = RunEvent & { time: string };
