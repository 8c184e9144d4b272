// A trained run, opened for use: its data, its device, and its model with the weights that validation chose (the last
// ones when there was no validation).

import { Device } from '../native/device.js';
import { Model } from '../nn/model.js';
import type { ResolvedConfig } from '../config/schema.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import type { Checkpoint } from '../train/checkpoint.js';
import { RunFolder } from '../train/run-folder.js';
import { bestStep } from '../train/trainer.js';
import { evaluatedFile } from '../train/learner.js';
import { UserError } from '../util/errors.js';
import { SafetensorsFile } from '../util/safetensors.js';
import { shapeModel } from './shape-model.js';
import type { ModelBuilder } from './train.js';

export interface OpenRunOptions {
  threads?: number;
  /** The run's own model, when it was trained with one. */
  model?: ModelBuilder;
  /** Weights of this safetensors file instead of the run's, such as ones edited or averaged elsewhere. */
  weights?: string;
}

export class OpenRun {
  readonly config: ResolvedConfig;
  readonly source: SequenceStore;
  readonly device: Device;
  readonly model: Model;

  constructor(path: string, options: OpenRunOptions = {}) {
    const run = RunFolder.open(path);
    this.config = run.description.config;
    this.source = SequenceStore.open(run.description.store);
    const threads = options.threads ?? this.config.threads;
    this.device = Device.open(threads === undefined ? {} : { threads });
    this.model = new Model(this.device, shapeModel(this.config, this.source, options.model), this.config.seed);
    const file =
      options.weights === undefined
        ? chosenCheckpoint(run).open(evaluatedFile(this.config))
        : new SafetensorsFile(options.weights);
    try {
      this.model.load(file);
    } finally {
      file.close();
    }
  }

  [Symbol.dispose](): void {
    this.device.dispose();
  }
}

function chosenCheckpoint(run: RunFolder): Checkpoint {
  const folder = run.checkpoints();
  const { checkpoint, refused } = folder.latest();
  if (!checkpoint) {
    const reasons = refused.map(({ path, reason }) => `${path}: ${reason}`).join('; ');
    throw new UserError(
      'no-checkpoint',
      `${run.path} has no sound checkpoint. ${reasons}`,
      'Train it: turbogr resume.',
    );
  }
  const best = bestStep(checkpoint);
  return best === undefined || best === checkpoint.step ? checkpoint : folder.require(best);
}
