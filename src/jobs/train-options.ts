// Options of `train` and `resume`.

import type { UncheckedConfig } from '../config/resolve.js';
import type { ConfigInput, ResolvedConfig } from '../config/schema.js';
import type { RunEvent } from '../events/event.js';
import type { ModelDefinition } from '../nn/definition.js';
import type { DataOptions } from './open-data.js';
import type { TrainStart } from './train-report.js';

/** Builds a custom model; `hasTime`: whether batches have times. */
export type ModelBuilder = (config: ResolvedConfig, hasTime: boolean) => ModelDefinition;

export interface TrainOptions extends DataOptions {
  /** Several are merged; later ones win. */
  config?: ConfigInput | readonly ConfigInput[];
  /** Unchecked settings, such as from files and flags: they override `config` and are validated here. */
  settings?: readonly UncheckedConfig[];
  /** Folder of the run; default `runs/<data>-<model>`. */
  run?: string;
  /** A custom model instead of the config's. */
  model?: ModelBuilder;
  /** Verify the store's checksums during training, before the first checkpoint (default true). */
  verify?: boolean;
  /** Start from the weights of this safetensors file instead of random ones. */
  initialWeights?: string;
  /** False skips the test, as in a search on validation. */
  test?: boolean;
  /** Called once, before the first step. */
  onStart?: (start: TrainStart) => void;
  onEvent?: (event: RunEvent) => void;
  /** Write the first steps as a Chrome trace to this file. */
  trace?: string;
}

export type ResumeOptions = Pick<TrainOptions, 'model' | 'verify' | 'onStart' | 'onEvent' | 'signal' | 'trace'> & {
  /** The run's sequence store, if it was moved. */
  store?: string;
};
