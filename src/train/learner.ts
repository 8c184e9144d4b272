// The state that a step changes: model, optimiser state and, if configured, the exponential moving average of the weights;
// and how it is saved to and restored from a checkpoint.

import { tmpdir } from 'node:os';
import type { ResolvedConfig } from '../config/schema.js';
import { type RankGroups, singleGroup } from '../dist/shard/rank-groups.js';
import { isDivided } from '../dist/shard/place-table.js';
import { wholeRows } from '../dist/shard/shard-rows.js';
import type { Device } from '../native/device.js';
import { Model, type NamedWeight } from '../nn/model.js';
import type { ModelShape } from '../nn/model-shape.js';
import { readRows, writeRows } from '../ops/copy-rows.js';
import { lerp } from '../ops/elementwise.js';
import { MOST_REQUESTS } from '../ops/read-again.js';
import type { Table } from '../ops/table.js';
import { Tape } from '../ops/tape.js';
import { divideDense } from '../optim/dense-slices.js';
import { GradientSums } from '../optim/gradients.js';
import { Optimizer } from '../optim/optimizer.js';
import { scheduleFactor } from '../optim/schedule.js';
import { BYTES } from '../tensor/dtype.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import { isF32, type Tensor } from '../tensor/tensor.js';
import { WHOLE } from '../util/row-shard.js';
import { SafetensorsFile } from '../util/safetensors.js';
import type { CheckpointTensors } from './checkpoint-tensors.js';
import type { Checkpoint, StoredTensor } from './checkpoint.js';
import { evaluatedFile } from './chosen-weights.js';
import { Objective } from './objective.js';
import { type LaneRange, lanesOf } from './lane-tree.js';
import type { Wishes } from './rank-nodes.js';
import { rankShare } from './rank-share.js';
import { RankSum } from './rank-sum.js';
import { ReplicaCheck } from './replica-check.js';
import { sentNegatives } from './sent-negatives.js';
import { computeStages, fetchStages, schedule, type ScheduleKind, scheduleKind, streamOf } from './stages.js';
import { readOldRows, storedOldRows } from './old-rows.js';
import { StaleRows } from './stale-rows.js';
import { restoreMoments, storedMoments } from './stored-slices.js';
import { type NegativeCounts, type StepFigures, type StepParts, StepRun } from './step-run.js';

export interface LearnerOptions {
  device: Device;
  config: ResolvedConfig;
  shape: ModelShape;
  /** [V] training events of each item. */
  counts: Int32Array;
  /** Lanes read copies of their rows instead of the table, with the same bits. Default: only where required. */
  staged?: boolean;
  /** Folder for files of memory-mapped tables; default: the system's temporary folder. */
  tableFolder?: string;
  /** The ranks that train together; default: this one alone. */
  groups?: RankGroups;
}

/** Steps between two counts of negatives: a count costs about 1 % of a step. */
const COUNT_EVERY = 16;

export interface StepPlace {
  /** Counted from 1. */
  step: number;
  totalSteps: number;
  /** Tokens of each lane of the step, on all ranks; default: those of the given batches. */
  laneTokens?: readonly number[];
}

/** An opened step: its rows are being fetched, if they are fetched ahead of the updates. */
export interface OpenedStep {
  readonly run: StepRun;
  readonly lr: number;
}

/** A step that has been enqueued. */
export interface StartedStep {
  /** Resolve when the device has computed them. */
  figures: Promise<StepFigures>;
  loss: Promise<number>;
  lr: number;
  /** Of this rank's lanes. */
  negatives: Promise<NegativeCounts | undefined>;
  /** What any of the ranks requested. */
  agreed: Wishes;
}

const NO_WISHES: Wishes = { stop: false, save: false };

export class Learner {
  readonly model: Model;
  readonly #device: Device;
  readonly #config: ResolvedConfig;
  readonly #parts: StepParts;
  readonly #average: Model | undefined;
  readonly #kind: ScheduleKind;
  /** Whether rows that the next step reads too are updated before all others. */
  readonly #againFirst: boolean;
  /** The most recently opened step. */
  #newest: StepRun | undefined;
  /** Outcome of the last step, success or failure. */
  #lastFigures: Promise<unknown> = Promise.resolve();

  constructor(options: LearnerOptions) {
    const { device, config, shape, counts, staged = false, groups = singleGroup(), tableFolder = tmpdir() } = options;
    const { world, shard } = groups;
    this.#device = device;
    this.#config = config;
    this.#kind = scheduleKind(config.overlap === 'on', world.size);
    const mappedIn = config.mapTables ? tableFolder : undefined;
    const itemStorage = { dtype: config.optimizer.tableStorage, mappedIn };
    const use = {
      rows: shape.items,
      width: shape.definition.d,
      readWhole: config.loss.kind === 'full-softmax',
      rounded: itemStorage.dtype !== 'f32',
    };
    const divided = isDivided(use, shard.count);
    const itemShard = divided ? shard : WHOLE;
    const sent = divided
      ? sentNegatives(config, { ...use, owners: shard.count, ranks: world.size })
      : { halves: false, segmented: false };
    this.model = new Model(device, { ...shape, itemStorage }, config.seed, itemShard);
    const trained = {
      parameters: this.model.parameters,
      decays: this.model.specs.map(spec => spec.decay),
      tables: this.model.tables,
    };
    // If rows are fetched ahead of the updates, computing continues while row gradients are exchanged and applied.
    const rowStream = config.staleness === 0 ? 'compute' : streamOf(this.#kind, 'rows');
    const hasSome = (table: Table): boolean => divided && table === this.model.items;
    const portions = divideDense(
      trained.parameters.map(({ value }) => value.size),
      world.size,
    );
    const gradients = new GradientSums(device, trained);
    const ranks = world.size > 1 ? { device, trained, groups, portions, gradients, isDivided: hasSome } : undefined;
    this.#parts = {
      device,
      trained,
      model: this.model,
      objective: new Objective({ device, scorer: this.model.scorer, config: config.loss, counts }),
      optimizer: new Optimizer(
        device,
        { ...config.optimizer, seed: config.seed, rowStream },
        trained,
        ranks && rankShare(ranks),
      ),
      gradients,
      seed: config.seed,
      encoderDraws: countEncoderDraws(this.model),
      groups,
      divided,
      staged: staged || divided || config.staleness !== 0 || config.wire !== 'f32',
      wire: config.wire,
      ...sent,
      stale: new StaleRows(device, this.model.items, config.staleness, rowStream),
      rankSum:
        ranks && new RankSum({ ...ranks, stream: streamOf(this.#kind, 'reduce'), early: this.#kind === 'overlapped' }),
      replicaCheck: ranks && new ReplicaCheck({ ...ranks, model: this.model, every: config.checkReplicas }),
    };
    // Not with clipping, which needs the norm of all gradients first, nor with more lanes per rank than one call takes.
    const mayPart = divided && !this.#parts.optimizer.clips && config.batch.lanes <= MOST_REQUESTS * world.size;
    this.#againFirst = config.staleness === 'exact' && mayPart;
    // Same seed: the average starts with the model's weights.
    if (config.optimizer.ema !== undefined) this.#average = new Model(device, shape, config.seed, itemShard);
  }

  /** The weights to validate and test with; of a sharded table, this rank's rows. */
  get evaluated(): Model {
    return this.#average ?? this.model;
  }

  /** How many steps beyond the next one are opened before they run. */
  get ahead(): number {
    return this.#parts.stale.ahead;
  }

  /**
   * Opens a step over the batches of its lanes; an empty lane has none. If rows are fetched ahead of the updates, they are
   * requested now and the batches are copied; otherwise nothing happens until the step is run.
   */
  open(batches: readonly (JaggedBatch | undefined)[], place: StepPlace): OpenedStep {
    const { step, totalSteps } = place;
    const { optimizer, batch } = this.#config;
    const factor = scheduleFactor(optimizer.schedule, step, totalSteps);
    const lr = optimizer.lr * factor;
    const rates = { step, lr, tableLr: (optimizer.tableLr ?? optimizer.lr) * factor };
    const laneTokens = place.laneTokens ?? Array.from({ length: batch.lanes }, (_, l) => batches[l]?.item.length ?? 0);
    const count = step % COUNT_EVERY === 1;
    const run = new StepRun(this.#parts, { batches, lanes: batch.lanes, laneTokens, rates, count });
    if (this.ahead > 0) run.run(fetchStages(this.#kind, run.rounds));
    this.#newest = run;
    return { run, lr };
  }

  /**
   * Enqueues a step; the loss, a mean over all its tokens, resolves when the device has computed it. `openNext` opens the steps
   * ahead: after the rows that are sent again for this step (exchanges keep their order), before the computation that hides it.
   */
  async run(
    { run, lr }: OpenedStep,
    wishes: Wishes = NO_WISHES,
    openNext: () => void = () => undefined,
  ): Promise<StartedStep> {
    if (this.ahead > 0) {
      const stream = streamOf(this.#kind, 'rows');
      run.catchUp(stream);
      openNext();
      if (this.#againFirst && this.#newest && this.#newest !== run) run.precede(this.#newest, stream);
      run.run(computeStages(this.#kind, run.rounds));
    } else {
      run.run(schedule(this.#kind, run.rounds, this.#config.pipeline));
    }
    const negatives = run.counts();
    negatives.catch(() => undefined); // the same error as the loss's
    const agreed = await run.finish(wishes);
    const figures = run.figures(this.#lastFigures);
    this.#lastFigures = figures.catch(() => undefined); // the trainer awaits it one step later and handles the error there
    this.#updateAverage();
    const loss = figures.then(({ loss: mean }) => mean);
    loss.catch(() => undefined);
    return { figures, loss, lr, negatives, agreed };
  }

  /** Opens and runs a step. */
  step(batches: readonly (JaggedBatch | undefined)[], place: StepPlace): Promise<StartedStep> {
    return this.run(this.open(batches, place));
  }

  /** The lanes that this rank computes. */
  get lanes(): LaneRange {
    const { world } = this.#parts.groups;
    return lanesOf(this.#config.batch.lanes, world.rank, world.size);
  }

  /** Broadcasts rank 0's replicated state; sharded state stays as it is. */
  share(): void {
    const models = this.#average ? [this.model, this.#average] : [this.model];
    const whole = models.flatMap(({ all }) => all).filter(({ shard }) => shard.count === 1);
    const state = this.#parts.optimizer.tableState().filter(({ shard }) => shard.count === 1);
    const { world } = this.#parts.groups;
    for (const { value } of [...whole, ...state]) world.broadcast(this.#device, value, 0);
  }

  /** Bytes that live from step to step, by owner. */
  held(): Record<string, number> {
    const bytes = (tensors: readonly { value: Tensor }[]): number =>
      tensors.reduce((sum, { value }) => sum + BYTES[value.dtype] * value.size, 0);
    return {
      'dense weights': bytes(this.model.parameters),
      tables: bytes(this.model.tables),
      'optimiser state': bytes([...this.#parts.optimizer.moments(), ...this.#parts.optimizer.tableState()]),
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

  /** SHA-256 of the unsharded weights. Collective if tables are sharded. */
  digest(model: Model = this.model): Promise<string> {
    const { group } = this.#parts.groups;
    return model.digest(({ value, shape: [rows] }: NamedWeight) => wholeRows(this.#device, group, { value, rows }));
  }

  /** Everything needed to continue bit for bit, by file. */
  async files(): Promise<Record<string, readonly StoredTensor[]>> {
    const { world } = this.#parts.groups;
    const moments = storedMoments(this.#device, world, this.#parts.optimizer.moments());
    const tables = this.#parts.optimizer.tableState().map(
      ({ name, value, shape, shard }): StoredTensor => ({
        name,
        dtype: 'F32',
        shape,
        shard,
        read: () => readRows(this.#device, value),
      }),
    );
    const { old } = this.#parts.stale;
    return {
      weights: this.model.stored(),
      ...(world.size === 1 ? { optimizer: [...moments, ...tables] } : { optimizer: tables, moments }),
      ...(this.#average && { average: this.#average.stored() }),
      ...(old.length > 0 && { stale: await storedOldRows(this.#device, old, this.model.items.shard) }),
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
      for (const { name, value, shard } of this.#parts.optimizer.tableState()) {
        writeRows(this.#device, value, (start, into) => file.readRows(name, shard, start, into));
      }
    });
    withFile(checkpoint, checkpoint.has('moments') ? 'moments' : 'optimizer', ({ parts }) => {
      restoreMoments(this.#device, parts, this.#parts.optimizer.moments());
    });
    if (this.#average) withFile(checkpoint, 'average', file => this.#average?.load(file));
    if (!checkpoint.has('stale')) return;
    withFile(checkpoint, 'stale', ({ parts }) => {
      this.#parts.stale.restore(readOldRows(this.#device, parts, this.model.items.shard));
    });
  }

  /** Loads the weights to evaluate from a checkpoint; optimiser state is not loaded, so training must not continue. */
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

function withFile(checkpoint: Checkpoint, name: string, use: (file: CheckpointTensors) => void): void {
  const file = checkpoint.open(name);
  try {
    use(file);
  } finally {
    file.close();
  }
}
