// What a caller may ask of `train` and `resume`.

import type { UncheckedConfig } from '../config/resolve.js';
import type { ConfigInput, ResolvedConfig } from '../config/schema.js';
import type { RunEvent } from '../events/event.js';
import type { ModelDefinition } from '../nn/definition.js';
import type { DataOptions } from './open-data.js';
import type { TrainStart } from './train-report.js';

/** Builds a custom model; `hasTime` says whether batches carry times. */
export type ModelBuilder = (config: ResolvedConfig, hasTime: boolean) => ModelDefinition;

export interface TrainOptions extends DataOptions {
  /** Several are merged, the later ones winning. */
  config?: ConfigInput | readonly ConfigInput[];
  /** Settings whose types nobody has checked, such as a file's and flags': they win over `config`, and are checked here. */
  settings?: readonly UncheckedConfig[];
  /** Folder of the run; by default `runs/<data>-<model>`. */
  run?: string;
  /** A custom model instead of the config's. */
  model?: ModelBuilder;
  /** Compare the store with its checksums while training begins, before the first checkpoint (default true). */
  verify?: boolean;
  /** Start from the weights of this safetensors file instead of random ones. */
  initialWeights?: string;
  /** False leaves the test events alone, as a search on validation does. */
  test?: boolean;
  /** Called once, before the first step. */
  onStart?: (start: TrainStart) => void;
  onEvent?: (event: RunEvent) => void;
  /** Write the first steps as a Chrome trace to this file. */
  trace?: string;
}

export type ResumeOptions = Pick<TrainOptions, 'model' | 'verify' | 'onStart' | 'onEvent' | 'signal' | 'trace'> & {
  /** Where the run's sequence store is now, when it was moved. */
  store?: string;
};
