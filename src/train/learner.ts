// What a step changes: model, optimiser state and, where asked for, the exponential average of the weights; and how all
// of it goes into a checkpoint and comes back.

import { tmpdir } from 'node:os';
import type { ResolvedConfig } from '../config/schema.js';
import type { Communicator } from '../dist/comm/communicator.js';
import { SingleRank } from '../dist/comm/single-rank.js';
import type { Device } from '../native/device.js';
import { Model } from '../nn/model.js';
import type { ModelShape } from '../nn/model-shape.js';
import { readRows, writeRows } from '../ops/copy-rows.js';
import { lerp } from '../ops/elementwise.js';
import { Tape } from '../ops/tape.js';
import { GradientSums } from '../optim/gradients.js';
import { Optimizer } from '../optim/optimizer.js';
import { scheduleFactor } from '../optim/schedule.js';
import { BYTES } from '../tensor/dtype.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import { isF32, type Tensor } from '../tensor/tensor.js';
import { SafetensorsFile } from '../util/safetensors.js';
import type { Checkpoint, StoredTensor } from './checkpoint.js';
import { evaluatedFile } from './chosen-weights.js';
import { Objective } from './objective.js';
import { type LaneRange, lanesOf } from './lane-tree.js';
import { RankSum, type Wishes } from './rank-sum.js';
import { schedule } from './stages.js';
import { type NegativeCounts, type StepParts, StepRun } from './step-run.js';

export interface LearnerOptions {
  device: Device;
  config: ResolvedConfig;
  shape: ModelShape;
  /** [V] training events of each item. */
  counts: Int32Array;
  /** Lanes read copies of their rows instead of the table; same bits. By default not, on one rank. */
  staged?: boolean;
  /** Where a mapped table's files are; by default the system's folder for temporary files. */
  tableFolder?: string;
  /** The ranks that train together; by default this one alone. */
  world?: Communicator;
}

/** Steps from one count of negatives to the next: a count costs about a hundredth of a step. */
const COUNT_EVERY = 16;

export interface StepPlace {
  /** Counted from 1. */
  step: number;
  totalSteps: number;
  /** Tokens of all lanes of the step, whoever computes them; by default those of the batches given. */
  tokens?: number;
  wishes?: Wishes;
}

/** A step that has been enqueued. */
export interface StartedStep {
  /** Comes when the device gets there. */
  loss: Promise<number>;
  lr: number;
  /** Of this rank's lanes. */
  negatives: Promise<NegativeCounts | undefined>;
  /** What any rank wished. */
  agreed: Wishes;
}

const NO_WISHES: Wishes = { stop: false, save: false };

export class Learner {
  readonly model: Model;
  readonly #device: Device;
  readonly #config: ResolvedConfig;
  readonly #parts: StepParts;
  readonly #average: Model | undefined;
  readonly #world: Communicator;

  constructor(options: LearnerOptions) {
    const { device, config, shape, counts, staged = false, world = new SingleRank(), tableFolder = tmpdir() } = options;
    this.#world = world;
    this.#device = device;
    this.#config = config;
    const mappedIn = config.mapTables ? tableFolder : undefined;
    const itemStorage = { dtype: config.optimizer.tableStorage, mappedIn };
    this.model = new Model(device, { ...shape, itemStorage }, config.seed);
    const trained = {
      parameters: this.model.parameters,
      decays: this.model.specs.map(spec => spec.decay),
      tables: this.model.tables,
    };
    this.#parts = {
      device,
      model: this.model,
      objective: new Objective({ device, scorer: this.model.scorer, config: config.loss, counts }),
      optimizer: new Optimizer(device, { ...config.optimizer, seed: config.seed }, trained),
      gradients: new GradientSums(device, trained),
      seed: config.seed,
      encoderDraws: countEncoderDraws(this.model),
      staged,
      rankSum: world.size > 1 ? new RankSum(device, trained, world) : undefined,
      // Losses are gathered as they come, beside whatever else the ranks tell each other.
      lossRanks: world.split(0, world.rank),
    };
    // The same seed: the average starts where the model does.
    if (config.optimizer.ema !== undefined) this.#average = new Model(device, shape, config.seed);
  }

  /** The weights to validate and test with. */
  get evaluated(): Model {
    return this.#average ?? this.model;
  }

  /**
   * Enqueues one optimiser step over the batches of its lanes; a lane without work has none. They are copied before this
   * returns; the loss, a mean over all their tokens, comes when the device gets there.
   */
  async step(batches: readonly (JaggedBatch | undefined)[], place: StepPlace): Promise<StartedStep> {
    const { step, totalSteps, wishes = NO_WISHES } = place;
    const { optimizer, batch, overlap } = this.#config;
    const factor = scheduleFactor(optimizer.schedule, step, totalSteps);
    const lr = optimizer.lr * factor;
    const rates = { step, lr, tableLr: (optimizer.tableLr ?? optimizer.lr) * factor };
    const tokens = place.tokens ?? batches.reduce((sum, lane) => sum + (lane?.item.length ?? 0), 0);
    const count = step % COUNT_EVERY === 1;
    const run = new StepRun(this.#parts, { batches, lanes: batch.lanes, range: this.lanes, tokens, rates, count });
    const busy = Array.from(batches.keys()).filter(lane => (batches[lane]?.item.length ?? 0) > 0);
    run.run(schedule(overlap === 'on' ? 'overlapped' : 'plain', busy));
    const loss = run.loss();
    loss.catch(() => undefined); // the trainer awaits it a step later, and meets the error there
    const negatives = run.counts();
    negatives.catch(() => undefined); // the same error as the loss's
    const agreed = await run.finish(wishes);
    this.#updateAverage();
    return { loss, lr, negatives, agreed };
  }

  /** The lanes that this rank computes. */
  get lanes(): LaneRange {
    return lanesOf(this.#config.batch.lanes, this.#world.rank, this.#world.size);
  }

  /** Everybody continues with what rank 0 has. */
  share(): void {
    const models = this.#average ? [this.model, this.#average] : [this.model];
    const tensors = [...models.flatMap(({ all }) => all), ...this.#parts.optimizer.state()];
    for (const { value } of tensors) this.#world.broadcast(this.#device, value, 0);
  }

  /** Bytes that live from step to step, by owner. */
  held(): Record<string, number> {
    const bytes = (tensors: readonly { value: Tensor }[]): number =>
      tensors.reduce((sum, { value }) => sum + BYTES[value.dtype] * value.size, 0);
    return {
      'dense weights': bytes(this.model.parameters),
      tables: bytes(this.model.tables),
      'optimiser state': bytes(this.#parts.optimizer.state()),
      ...(this.#average && { 'average of weights': bytes(this.#average.all) }),
    };
  }

  #updateAverage(): void {
    const { ema } = this.#config.optimizer;
    if (!this.#average || ema === undefined) return;
    const averages = this.#average.all;
    this.model.all.forEach(({ value: x }, i) => {
      const y = averages[i]!.value;
      if (isF32(x) && isF32(y)) lerp(this.#device, 1 - ema, { x, y });
    });
  }

  /** Everything that a bit-exact continuation needs, by file. */
  files(): Record<string, readonly StoredTensor[]> {
    const optimizer = this.#parts.optimizer.state().map(
      ({ name, value }): StoredTensor => ({
        name,
        dtype: 'F32',
        shape: value.shape,
        read: () => readRows(this.#device, value),
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
      for (const { name, value } of this.#parts.optimizer.state()) {
        writeRows(this.#device, value, (start, into) => file.readInto(name, 'F32', start, into));
      }
    });
    if (this.#average) withFile(checkpoint, 'average', file => this.#average?.load(file));
  }

  /** Takes the evaluated weights of a checkpoint; the optimiser is left as it is, so training must not go on. */
  takeEvaluated(checkpoint: Checkpoint): void {
    withFile(checkpoint, evaluatedFile(this.#config), file => this.evaluated.load(file));
  }
}

/** How many random ops the encoder has, found by running it on no tokens. */
function countEncoderDraws(model: Model): number {
  const none = new Int32Array(0);
  using tape = new Tape(model.device, { training: true });
  using batch = model.upload({
    offsets: Int32Array.of(0),
    item: none,
    time: new Float64Array(0),
    nextTime: new Float64Array(0),
    action: none,
  });
  model.encode(tape, batch);
  return tape.randomOps;
}

function withFile(checkpoint: Checkpoint, name: string, use: (file: SafetensorsFile) => void): void {
  const file = checkpoint.open(name);
  try {
    use(file);
  } finally {
    file.close();
  }
}
