// The training loop: steps over batches, with events, validation, early stopping, checkpoints and bit-exact resumption
// around them. Model, loss and optimiser are passed in; nothing here depends on an architecture.
//
// One await per step: the loss of step t is read while step t + 1 is already enqueued.

import { resolve } from 'node:path';
import type { ResolvedConfig } from '../config/schema.js';
import { BatchStream } from '../data/batch/batch-stream.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { costOf } from '../dist/balance/cost.js';
import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import { SingleRank } from '../dist/comm/single-rank.js';
import type { Model } from '../nn/model.js';
import { CostFit } from '../dist/balance/cost-fit.js';
import type { RunEvent, StepDone } from '../events/event.js';
import { type Checkpoint, type CheckpointFolder, trustedCheckpoint } from './checkpoint.js';
import { afterValidation, type EarlyStoppingState, shouldStop } from './early-stopping.js';
import { diverged } from './diverged.js';
import { computedOn, describeFailure, describeRun, flopCounts } from './describe-run.js';
import { EventLog } from './event-log.js';
import type { Learner } from './learner.js';
import { plannedSteps } from './plan-steps.js';
import type { Wishes } from './rank-nodes.js';
import type { RunFolder } from './run-folder.js';
import { LaneOrder, type LanePlace, type StepPlans } from './step-plan.js';
import { StepQueue } from './step-queue.js';
import type { StepFigures } from './step-run.js';
import type { SampledStep } from './step-sampler.js';
import { type FlopCounts, rankTokens, type StepSize, stepSize } from './step-size.js';
import { writeTogether } from './write-together.js';
import { FRESH_EPOCH, FRESH_STATE, TRAINING_STATE, type TrainingState } from './training-state.js';

export interface TrainingOptions {
  run: RunFolder;
  source: SequenceSource;
  learner: Learner;
  plans: StepPlans;
  /** The ranks that train and validate together; default: this one alone. Rank 0 writes and logs. */
  world?: Communicator;
  /** The configured metric of a model on all validation events, higher is better; absent without such events. Collective. */
  validate?: (model: Model) => Promise<number>;
  /** FMA peak in FLOP/s, for the MFU of each epoch. */
  peakFlops: number;
  /** What else to log after a step; collective. */
  sample?: (step: SampledStep) => Promise<readonly RunEvent[]>;
  /** Metrics of the baselines on the validation events; called before the first validation. */
  baselines?: () => Promise<Record<string, number>>;
  /** Weights to start from when there is no checkpoint; called on rank 0. */
  initialWeights?: () => string | undefined;
  /** Sees every event as it is logged. */
  onEvent?: (event: RunEvent) => void;
  /** Aborting finishes the step, writes a checkpoint and returns. */
  signal?: AbortSignal;
}

export interface TrainingResult {
  step: number;
  epoch: number;
  reason: 'epochs' | 'steps' | 'patience' | 'interrupted';
  early: EarlyStoppingState;
  /** Training time in seconds over all resumptions, including validation and checkpoints. */
  seconds: number;
}

/** A step that is enqueued and not yet awaited. */
interface StepUnderWay extends StepSize {
  step: number;
  epoch: number;
  lr: number;
  /** Tokens by rank. */
  rankTokens: number[];
  figures: Promise<StepFigures>;
  negatives: Promise<StepDone['negatives']>;
}

const NO_CHECKPOINT: ReturnType<CheckpointFolder['latest']> = { checkpoint: undefined, refused: [] };

export class Trainer {
  readonly #options: TrainingOptions;
  readonly #config: ResolvedConfig;
  readonly #totalSteps: number;
  readonly #mostSteps: number;
  readonly #saveEvery: number;
  readonly #checkpoints: CheckpointFolder;
  readonly #world: Communicator;
  readonly #leads: boolean;
  #log: EventLog | undefined;
  #stream!: BatchStream<LanePlace>;
  #step = 0;
  #state: Omit<TrainingState, 'cost'> = { ...FRESH_STATE };
  #cost: CostFit;
  #savedAt = -1;
  /** When the next checkpoint by time is due. */
  #saveDue = Number.POSITIVE_INFINITY;
  #clock = performance.now();
  /** What the ranks agreed on in the last step. */
  #agreed: Wishes = { stop: false, save: false };
  readonly #flops: FlopCounts;
  #baselinesKnown = false;
  #queue!: StepQueue;

  constructor(options: TrainingOptions) {
    this.#options = options;
    this.#config = options.run.description.config;
    this.#totalSteps = plannedSteps(options.plans, this.#config);
    this.#mostSteps = this.#config.maxSteps ?? Number.POSITIVE_INFINITY;
    this.#saveEvery = this.#config.checkpoint.every ?? Number.POSITIVE_INFINITY;
    this.#checkpoints = options.run.checkpoints();
    this.#world = options.world ?? new SingleRank();
    this.#leads = this.#world.rank === 0;
    const { definition } = options.learner.model;
    this.#cost = new CostFit(costOf(length => definition.flops(length)));
    this.#flops = flopCounts(options.learner.model, this.#config.model);
  }

  /** Trains to the end, or continues from the newest sound checkpoint if the run has one. */
  async run(): Promise<TrainingResult> {
    const { checkpoint, refused } = this.#leads ? this.#checkpoints.latest() : NO_CHECKPOINT;
    await this.#start(checkpoint);
    if (this.#leads) this.#log = new EventLog(this.#options.run.events, this.#step);
    if (checkpoint || refused.length > 0) {
      const from = checkpoint?.path ?? 'the beginning';
      this.#emit({ kind: 'resumed', step: this.#step, from, refused, ...computedOn(this.#options.learner) });
    } else {
      this.#emit(describeRun(this.#options, this.#totalSteps));
    }
    const { source, plans, learner } = this.#options;
    const order = new LaneOrder(plans, learner.lanes);
    this.#stream = new BatchStream({ source, order, from: order.from(this.#state.cursor), kept: plans.lanes });
    const ends = { step: this.#mostSteps, epoch: this.#config.epochs };
    this.#queue = new StepQueue({ learner, plans, stream: this.#stream, totalSteps: this.#totalSteps, ends });
    this.#clock = performance.now();
    this.#scheduleSave();
    try {
      const reason = await this.#loop();
      const digest = await this.#commonDigest();
      this.#emit({ kind: 'finished', step: this.#step, reason, digest });
      const { early, seconds, cursor } = this.#state;
      return { step: this.#step, epoch: cursor.epoch, reason, early, seconds };
    } catch (error) {
      this.#emit(describeFailure(error, this.#step));
      throw error;
    } finally {
      this.#stream.close();
      this.#log?.close();
    }
  }

  async #loop(): Promise<TrainingResult['reason']> {
    for (;;) {
      const reason = this.#ended();
      if (reason) {
        await this.#save();
        return reason;
      }
      await this.#trainUntilBoundary();
      const epochEnded = this.#state.cursor.position === 0;
      if (epochEnded) await this.#endEpoch();
      if (epochEnded || this.#agreed.save) await this.#save();
    }
  }

  #ended(): TrainingResult['reason'] | undefined {
    const { early, cursor } = this.#state;
    if (cursor.epoch >= this.#config.epochs) return 'epochs';
    if (this.#step >= this.#mostSteps) return 'steps';
    if (cursor.position === 0 && shouldStop(early, this.#config.evaluation.patience)) return 'patience';
    const stopped = this.#agreed.stop || (this.#world.size === 1 && this.#options.signal?.aborted === true);
    return stopped ? 'interrupted' : undefined;
  }

  /** Steps until something else is due: the end of the epoch, a checkpoint, the last step, an interruption. */
  async #trainUntilBoundary(): Promise<void> {
    const { learner, plans, signal } = this.#options;
    let last: StepUnderWay | undefined;
    let boundary = false;
    while (!boundary) {
      const { epoch } = this.#state.cursor;
      const { plan, opened } = this.#queue.next(this.#step, this.#state.cursor);
      this.#state.cursor = plan.next;
      const size = stepSize(plan, plans.windows, this.#flops);
      this.#step++;
      const wishes = { stop: signal?.aborted ?? false, save: this.#leads && this.#saveIsDue() };
      const openNext = () => this.#queue.openAhead(this.#step, plan.next);
      const { agreed, ...started } = await learner.run(opened, wishes, openNext);
      this.#agreed = agreed;
      if (last) await this.#settle(last);
      last = { ...started, ...size, step: this.#step, epoch, rankTokens: rankTokens(plan, this.#world.size) };
      boundary = this.#state.cursor.position === 0 || agreed.save || this.#step >= this.#mostSteps || agreed.stop;
    }
    if (last) await this.#settle(last, { pause: true });
  }

  /** Waits for a step, counts it and logs it. */
  async #settle(under: StepUnderWay, { pause = false } = {}): Promise<void> {
    const { step, epoch, lr, tokens, squares, flops, paperFlops: counted, figures: pending, negatives: drawn } = under;
    const { loss, rows } = await pending.catch((error: unknown) => {
      throw diverged(error, step);
    });
    const seconds = this.#tick();
    this.#cost.observe({ tokens, squares, seconds });
    const sums = this.#state.epoch;
    this.#state.epoch = {
      loss: sums.loss + loss * tokens,
      tokens: sums.tokens + tokens,
      seconds: sums.seconds + seconds,
      flops: sums.flops + flops,
    };
    const most = seconds * this.#options.peakFlops;
    const negatives = await drawn;
    const rate = { tokensPerSecond: tokens / seconds, mfu: flops / most, ...(counted && { mfuPaper: counted / most }) };
    const drawnRows = { ...(negatives && { negatives }), ...this.#staleness(rows) };
    const { size, rank } = this.#world;
    const spread = size > 1 && { spread: (Math.max(...under.rankTokens) * size) / tokens - 1 };
    this.#emit({ kind: 'step', step, epoch, loss, lr, tokens, ...rate, ...drawnRows, ...spread });
    const samples = await this.#options.sample?.({ step, tokens: under.rankTokens[rank]!, pause });
    for (const sample of samples ?? []) this.#emit(sample);
  }

  /** Counts of rows fetched ahead and changed meanwhile; undefined when rows are not fetched ahead. */
  #staleness({ read, changed }: StepFigures['rows']): Pick<StepDone, 'stale' | 'resent'> {
    if (this.#options.learner.ahead === 0) return {};
    const share = read === 0 ? 0 : changed / read;
    return this.#config.staleness === 'exact' ? { resent: share } : { stale: share };
  }

  async #endEpoch(): Promise<void> {
    const epoch = this.#state.cursor.epoch - 1;
    const { loss, tokens, seconds, flops } = this.#state.epoch;
    const mfu = flops / seconds / this.#options.peakFlops;
    const cost = this.#cost.model;
    this.#emit({ kind: 'epoch', step: this.#step, epoch, loss: loss / tokens, tokens, seconds, mfu, cost });
    this.#state.epoch = FRESH_EPOCH;
    const { every, metric } = this.#config.evaluation;
    const due = (epoch + 1) % every === 0 || epoch + 1 === this.#config.epochs;
    if (!this.#options.validate || !due) return;
    await this.#rankBaselines(metric);
    const own = await this.#options.validate(this.#options.learner.evaluated);
    const [value = own] = await gatherJson(this.#world, own); // rank 0's decides
    const early = afterValidation(this.#state.early, { value, step: this.#step, epoch });
    this.#state.early = early;
    const best = early.best?.step === this.#step;
    this.#emit({ kind: 'validation', step: this.#step, epoch, metric, value, best, seconds: this.#tick() });
  }

  /** Computed once per process: the events do not change. */
  async #rankBaselines(metric: string): Promise<void> {
    if (this.#baselinesKnown || !this.#options.baselines) return;
    this.#baselinesKnown = true;
    this.#tick();
    const values = await this.#options.baselines();
    this.#emit({ kind: 'baselines', step: this.#step, metric, values, seconds: this.#tick() });
  }

  /** By steps or by time; when a checkpoint is written never changes a result. */
  #saveIsDue(): boolean {
    return this.#step % this.#saveEvery === 0 || performance.now() >= this.#saveDue;
  }

  #scheduleSave(): void {
    this.#saveDue = performance.now() + this.#config.checkpoint.minutes * 60_000;
  }

  async #save(): Promise<void> {
    if (this.#savedAt === this.#step) return;
    this.#savedAt = this.#step;
    if (this.#world.size > 1) await this.#commonDigest();
    const started = performance.now();
    this.#tick();
    const { learner } = this.#options;
    const files = await writeTogether({
      world: this.#world,
      checkpoints: this.#checkpoints,
      learner,
      step: this.#step,
    });
    if (!this.#leads) return;
    const state: TrainingState = { ...this.#state, cost: this.#cost.state };
    const best = this.#state.early.best?.step ?? null;
    const path = await this.#checkpoints.seal({ step: this.#step, best, state, files });
    this.#scheduleSave();
    this.#checkpoints.prune({ keep: this.#config.checkpoint.keep, newest: this.#step });
    this.#emit({ kind: 'checkpoint', step: this.#step, path, seconds: (performance.now() - started) / 1000 });
  }

  /** Every rank continues with rank 0's weights, optimiser state and place in the data. */
  async #start(found: Checkpoint | undefined): Promise<void> {
    const { learner, initialWeights } = this.#options;
    const own = {
      checkpoint: found ? resolve(found.path) : null,
      weights: (this.#leads && !found && initialWeights?.()) || null,
    };
    const [first] = await gatherJson(this.#world, own);
    const { checkpoint, weights } = first!;
    if (checkpoint !== null) this.#restore(found ?? trustedCheckpoint(checkpoint));
    else if (weights !== null) learner.start(weights);
    if (this.#world.size > 1) learner.share();
  }

  /** Digest of the weights, which must be the same on every rank. */
  async #commonDigest(): Promise<string> {
    const digest = await this.#options.learner.digest();
    const all = await gatherJson(this.#world, digest);
    const other = all.findIndex(theirs => theirs !== all[0]);
    if (other >= 0)
      throw new Error(`after step ${this.#step} the weights of rank ${other} differ from those of rank 0`);
    return digest;
  }

  #restore(checkpoint: Checkpoint): void {
    this.#options.learner.restore(checkpoint);
    this.#step = checkpoint.step;
    this.#savedAt = checkpoint.step;
    const { cost, ...state } = TRAINING_STATE.parse(checkpoint.state);
    this.#state = state;
    this.#cost = CostFit.restore(cost);
  }

  /** Seconds since the last tick, added to the run's. */
  #tick(): number {
    const now = performance.now();
    const seconds = (now - this.#clock) / 1000;
    this.#clock = now;
    this.#state.seconds += seconds;
    return seconds;
  }

  #emit(event: RunEvent): void {
    this.#log?.append(event);
    this.#options.onEvent?.(event);
  }
}
