// Everything a run says about itself while it runs, one JSON object per line in `events.jsonl`. Whoever watches a run
// (progress line, report, dashboard) reads these and nothing else.

export interface RunStarted {
  kind: 'run';
  step: number;
  /** Short description of data and model, for a person who opens an old run. */
  data: { users: number; items: number; trainTokens: number; fingerprint: string };
  model: { kind: string; denseParameters: number; tableParameters: number };
  config: unknown;
  threads: number;
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
  /** Per trained token, on some steps: draws that count once, masked draws, and repetitions of an earlier draw. */
  negatives?: { effective: number; masked: number; repeated: number };
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
}

export interface Finished {
  kind: 'finished';
  step: number;
  reason: 'epochs' | 'steps' | 'patience' | 'interrupted';
  digest: string;
}

export type RunEvent = RunStarted | StepDone | EpochDone | Validated | Checkpointed | Resumed | Finished;

/** An event as it stands in the file. */
export type LoggedEvent = RunEvent & { time: string };
