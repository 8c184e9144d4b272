// What training reports: before the first step, and at the end.

import type { Choice } from '../config/rules.js';
import type { ResolvedConfig } from '../config/schema.js';
import type { StepShares } from '../events/event.js';
import type { EvaluationReport } from '../eval/report.js';
import type { TrainingResult } from '../train/trainer.js';
import type { PreparedSummary } from './left-out.js';
import type { RunPriors } from './priors.js';
import type { Verdict } from './verdict.js';

export interface TrainStart {
  run: string;
  config: ResolvedConfig;
  /** Settings that the rules chose from the log. */
  choices: readonly Choice[];
  /** Kind of the model: the config's, or the name that a custom model gives itself. */
  model: string;
  /** SHA-256 of the split. */
  fingerprint: string;
  users: number;
  items: number;
  /** What `prepare` left out or guessed; undefined if the store has no report. */
  prepared: PreparedSummary | undefined;
  /** Training events that are never used, because histories are longer than the model's length. */
  untrainedEvents: number;
  trainingEvents: number;
  tokensPerEpoch: number;
  totalSteps: number;
  denseParameters: number;
  blockParameters: number;
  tableParameters: number;
  peakFlops: number;
}

/** What `report.json` holds. */
export interface TrainReport extends Omit<TrainingResult, 'early'> {
  run: string;
  /** The validation that chose the weights; epochs are counted from 0. */
  best: { value: number; step: number; epoch: number } | null;
  metric: string;
  /** Part that chose the epoch; if `test`, the test figures are not held out. */
  chosenOn: 'validation' | 'test';
  /** The last validation was the best one, and training did not stop because of patience. */
  stillImproving: boolean;
  /** SHA-256 of the tested weights: the best on validation, or the last ones without validation. */
  digest: string;
  seed: number;
  threads: number;
  parameters: { blockParameters: number; denseParameters: number; tableParameters: number };
  /** How step time divides, from the samples of this process; absent if there are none. */
  shares?: StepShares;
  /** How the log's priors were fitted; absent without them. */
  priors?: RunPriors;
  /** Absent if the run was interrupted, was not to be tested, or has no test events. */
  test?: EvaluationReport;
  /** What the result means; absent when the run was interrupted. */
  verdict?: Verdict;
}
