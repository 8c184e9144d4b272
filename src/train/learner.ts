// What a step changes: model, optimiser state and, where asked for, the exponential average of the weights; and how all
// of it goes into a checkpoint and comes back.

import type { ResolvedConfig } from '../config/schema.js';
import type { Device } from '../native/device.js';
import { Model } from '../nn/model.js';
import type { ModelInput } from '../nn/batch-tensors.js';
import type { ModelShape } from '../nn/model-shape.js';
import { lerp } from '../ops/elementwise.js';
import { Tape } from '../ops/tape.js';
import { Optimizer } from '../optim/optimizer.js';
import { scheduleFactor } from '../optim/schedule.js';
import { SafetensorsFile } from '../util/safetensors.js';
import type { Checkpoint, StoredTensor } from './checkpoint.js';
import { Objective } from './objective.js';

export interface LearnerOptions {
  device: Device;
  config: ResolvedConfig;
  shape: ModelShape;
  /** [V] training events of each item. */
  counts: Int32Array;
}

export interface StepPlace {
  /** Counted from 1. */
  step: number;
  totalSteps: number;
}

/** The file of a checkpoint that holds the weights to evaluate with. */
export function evaluatedFile(config: ResolvedConfig): string {
  return config.optimizer.ema === undefined ? 'weights' : 'average';
}

export class Learner {
  readonly model: Model;
  readonly #device: Device;
  readonly #config: ResolvedConfig;
  readonly #optimizer: Optimizer;
  readonly #objective: Objective;
  readonly #average: Model | undefined;

  constructor({ device, config, shape, counts }: LearnerOptions) {
    this.#device = device;
    this.#config = config;
    this.model = new Model(device, shape, config.seed);
    this.#optimizer = new Optimizer(device, config.optimizer, {
      parameters: this.model.parameters,
      decays: this.model.specs.map(spec => spec.decay),
      tables: this.model.tables,
    });
    this.#objective = new Objective(device, config.loss, counts);
    // The same seed: the average starts where the model does.
    if (config.optimizer.ema !== undefined) this.#average = new Model(device, shape, config.seed);
  }

  /** The weights to validate and test with. */
  get evaluated(): Model {
    return this.#average ?? this.model;
  }

  /**
   * Enqueues one optimiser step over the batches. They are copied before this returns; the loss, a mean over all their
   * tokens, comes when the device gets there.
   */
  step(batches: readonly ModelInput[], { step, totalSteps }: StepPlace): { loss: Promise<number>; lr: number } {
    const { optimizer, seed } = this.#config;
    const meanOver = batches.reduce((sum, batch) => sum + batch.item.length, 0);
    const held: { dispose(): void }[] = [];
    const losses = batches.map((input, micro) => {
      const batch = this.model.upload(input);
      // Dropout and negatives are keyed by the batch's number in the run.
      using tape = new Tape(this.#device, { training: true, seed, step: step * optimizer.accumulate + micro });
      const states = this.model.encode(tape, batch);
      const { items } = this.model;
      const objective = this.#objective.apply(tape, { states, items, targets: batch.targets!, meanOver });
      tape.backward();
      this.#optimizer.gather();
      held.push(batch, ...objective.held);
      return this.#device.read(objective.loss);
    });
    const factor = scheduleFactor(optimizer.schedule, step, totalSteps);
    const lr = optimizer.lr * factor;
    this.#optimizer.step({ step, lr, tableLr: (optimizer.tableLr ?? optimizer.lr) * factor });
    for (const tensors of held) tensors.dispose();
    this.#updateAverage();
    const loss = Promise.all(losses).then(parts => parts.reduce((sum, part) => sum + part[0]!, 0));
    loss.catch(() => undefined); // the trainer awaits it a step later, and meets the error there
    return { loss, lr };
  }

  #updateAverage(): void {
    const { ema } = this.#config.optimizer;
    if (!this.#average || ema === undefined) return;
    const averages = this.#average.all;
    this.model.all.forEach(({ value }, i) => lerp(this.#device, 1 - ema, { x: value, y: averages[i]!.value }));
  }

  /** Everything that a bit-exact continuation needs, by file. */
  files(): Record<string, readonly StoredTensor[]> {
    const optimizer = this.#optimizer.state().map(
      ({ name, value }): StoredTensor => ({
        name,
        dtype: 'F32',
        shape: value.shape,
        read: () => this.#device.read(value),
      }),
    );
    return {
      weights: this.model.stored(),
      optimizer,
      ...(this.#average && { average: this.#average.stored() }),
    };
  }

  /** Starts from exported weights instead of random ones. */
  start(path: string): void {
    const file = new SafetensorsFile(path);
    try {
      this.model.load(file);
      this.#average?.load(file);
    } finally {
      file.close();
    }
  }

  /** Continues from a checkpoint. */
  restore(checkpoint: Checkpoint): void {
    withFile(checkpoint, 'weights', file => this.model.load(file));
    withFile(checkpoint, 'optimizer', file => {
      for (const { name, value } of this.#optimizer.state()) this.#device.upload(value, file.read(name, 'F32'));
    });
    if (this.#average) withFile(checkpoint, 'average', file => this.#average?.load(file));
  }

  /** Takes the evaluated weights of a checkpoint; the optimiser is left as it is, so training must not go on. */
  takeEvaluated(checkpoint: Checkpoint): void {
    withFile(checkpoint, evaluatedFile(this.#config), file => this.evaluated.load(file));
  }
}

function withFile(checkpoint: Checkpoint, name: string, use: (file: SafetensorsFile) => void): void {
  const file = checkpoint.open(name);
  try {
    use(file);
  } finally {
    file.close();
  }
}
