// The training loop: batches in, steps out, with everything that makes a run trustworthy around it: events, validation,
// early stopping, checkpoints, and continuation from one bit for bit. Model, loss and optimiser are given; nothing here
// knows an architecture.
//
// One await a step: the loss of step t is read while step t + 1 is already enqueued.

import { z } from 'zod';
import type { ResolvedConfig } from '../config/schema.js';
import type { BatchPlan } from '../data/batch/batch-plan.js';
import { BatchStream } from '../data/batch/batch-stream.js';
import type { JaggedBatch } from '../data/batch/jagged-batch.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { costOf } from '../dist/balance/cost.js';
import { COST_FIT_STATE, CostFit } from '../dist/balance/cost-fit.js';
import type { RunEvent } from '../events/event.js';
import { TurboError } from '../tensor/turbo-error.js';
import { UserError } from '../util/errors.js';
import type { Checkpoint, CheckpointFolder } from './checkpoint.js';
import { afterValidation, type EarlyStoppingState, NOTHING_YET, shouldStop } from './early-stopping.js';
import { EventLog } from './event-log.js';
import type { Learner } from './learner.js';
import { planBatches, plannedSteps } from './plan-batches.js';
import type { RunFolder } from './run-folder.js';

export interface TrainingOptions {
  run: RunFolder;
  source: SequenceSource;
  learner: Learner;
  /** The chosen metric on the validation events, higher is better; never called when there is nothing to validate on. */
  validate?: () => Promise<number>;
  /** FMA peak in FLOP/s, for the MFU of each epoch. */
  peakFlops: number;
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
  /** Training time in seconds over all continuations, validation and checkpoints included. */
  seconds: number;
}

/** What a checkpoint holds beside tensors. */
const STATE = z.strictObject({
  cursor: z.strictObject({ epoch: z.int(), position: z.int() }),
  early: z.strictObject({
    best: z.strictObject({ value: z.number(), step: z.int(), epoch: z.int() }).nullable(),
    waited: z.int(),
  }),
  /** Sums over the epoch so far; the loss is weighted by tokens. */
  epoch: z.strictObject({ loss: z.number(), tokens: z.int(), seconds: z.number(), flops: z.number() }),
  /** What tokens and pairs of tokens cost, fitted to the steps' times. */
  cost: COST_FIT_STATE,
  seconds: z.number(),
});
type TrainingState = z.infer<typeof STATE>;

interface StepSize {
  tokens: number;
  /** Sum of the squared lengths. */
  squares: number;
  flops: number;
}

/** A step that has been enqueued and not yet waited for. */
interface StepUnderWay extends StepSize {
  step: number;
  epoch: number;
  lr: number;
  loss: Promise<number>;
}

const FRESH_EPOCH: TrainingState['epoch'] = { loss: 0, tokens: 0, seconds: 0, flops: 0 };

/** What a person can do about a loss that is no number; any other error is passed on. */
function diverged(error: unknown, step: number): unknown {
  if (!(error instanceof TurboError) || error.kind !== 'not-finite') return error;
  const message = `training diverged at step ${step}: ${error.message}`;
  const remedy = 'Lower optimizer.lr, set optimizer.clip (1 is usual), or add warm-up steps; then train a new run.';
  return new UserError('diverged', message, remedy, { cause: error });
}

/** The step whose weights validation liked best, as a checkpoint remembers it; undefined without validation. */
export function bestStep(checkpoint: Checkpoint): number | undefined {
  return STATE.parse(checkpoint.state).early.best?.step;
}

export class Trainer {
  readonly #options: TrainingOptions;
  readonly #config: ResolvedConfig;
  readonly #plan: BatchPlan;
  readonly #totalSteps: number;
  readonly #mostSteps: number;
  readonly #saveEvery: number;
  readonly #checkpoints: CheckpointFolder;
  #log!: EventLog;
  #stream!: BatchStream;
  #step = 0;
  #state: Omit<TrainingState, 'cost'> = {
    cursor: { epoch: 0, position: 0 },
    early: NOTHING_YET,
    epoch: FRESH_EPOCH,
    seconds: 0,
  };
  #cost: CostFit;
  #savedAt = -1;
  #clock = performance.now();

  constructor(options: TrainingOptions) {
    this.#options = options;
    this.#config = options.run.description.config;
    this.#plan = planBatches(options.source, this.#config);
    this.#totalSteps = plannedSteps(this.#plan, this.#config);
    this.#mostSteps = this.#config.maxSteps ?? Number.POSITIVE_INFINITY;
    this.#saveEvery = this.#config.checkpoint.every ?? Number.POSITIVE_INFINITY;
    this.#checkpoints = options.run.checkpoints();
    const { definition } = options.learner.model;
    this.#cost = new CostFit(costOf(length => definition.flops(length)));
  }

  /** Trains to the end, or continues from the newest sound checkpoint if the run has one. */
  async run(): Promise<TrainingResult> {
    const { checkpoint, refused } = this.#checkpoints.latest();
    if (checkpoint) this.#restore(checkpoint);
    this.#log = new EventLog(this.#options.run.events, this.#step);
    if (checkpoint || refused.length > 0) {
      this.#emit({ kind: 'resumed', step: this.#step, from: checkpoint?.path ?? 'the beginning', refused });
    } else {
      this.#emit(this.#describe());
    }
    this.#stream = new BatchStream({
      source: this.#options.source,
      plan: this.#plan,
      cursor: this.#state.cursor,
      held: this.#config.optimizer.accumulate,
    });
    this.#clock = performance.now();
    try {
      const reason = await this.#loop();
      const digest = await this.#options.learner.model.digest();
      this.#emit({ kind: 'finished', step: this.#step, reason, digest });
      const { early, seconds, cursor } = this.#state;
      return { step: this.#step, epoch: cursor.epoch, reason, early, seconds };
    } finally {
      this.#stream.close();
      this.#log.close();
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
      if (epochEnded || this.#step % this.#saveEvery === 0) await this.#save();
    }
  }

  #ended(): TrainingResult['reason'] | undefined {
    const { early, cursor } = this.#state;
    if (cursor.epoch >= this.#config.epochs) return 'epochs';
    if (this.#step >= this.#mostSteps) return 'steps';
    if (cursor.position === 0 && shouldStop(early, this.#config.evaluation.patience)) return 'patience';
    return this.#options.signal?.aborted ? 'interrupted' : undefined;
  }

  /** Steps until something else is due: the end of the epoch, a checkpoint, the last step, an interruption. */
  async #trainUntilBoundary(): Promise<void> {
    const { learner, signal } = this.#options;
    let last: StepUnderWay | undefined;
    let boundary = false;
    while (!boundary) {
      const { epoch } = this.#state.cursor;
      const batches = this.#nextGroup();
      const size = this.#sizeOf(batches);
      this.#step++;
      const started = learner.step(batches, { step: this.#step, totalSteps: this.#totalSteps });
      if (last) await this.#settle(last);
      last = { ...started, ...size, step: this.#step, epoch };
      boundary =
        this.#state.cursor.position === 0 ||
        this.#step % this.#saveEvery === 0 ||
        this.#step >= this.#mostSteps ||
        (signal?.aborted ?? false);
    }
    if (last) await this.#settle(last);
  }

  /** Waits for a step, counts it and tells of it. */
  async #settle({ step, epoch, lr, tokens, squares, flops, loss: pending }: StepUnderWay): Promise<void> {
    const loss = await pending.catch((error: unknown) => {
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
    const mfu = flops / seconds / this.#options.peakFlops;
    this.#emit({ kind: 'step', step, epoch, loss, lr, tokens, tokensPerSecond: tokens / seconds, mfu });
  }

  /** The batches of one optimiser step: `accumulate` of them, fewer at the end of an epoch. */
  #nextGroup(): JaggedBatch[] {
    const { epoch, position } = this.#state.cursor;
    const left = this.#plan.batches(epoch) - position;
    const count = Math.min(this.#config.optimizer.accumulate, left);
    const batches = Array.from({ length: count }, () => this.#stream.next());
    this.#state.cursor = this.#stream.cursor;
    return batches;
  }

  #sizeOf(batches: readonly JaggedBatch[]): StepSize {
    const { definition } = this.#options.learner.model;
    const size = { tokens: 0, squares: 0, flops: 0 };
    for (const { offsets } of batches) {
      for (let b = 1; b < offsets.length; b++) {
        const length = offsets[b]! - offsets[b - 1]!;
        size.tokens += length;
        size.squares += length * length;
        size.flops += definition.flops(length);
      }
    }
    return size;
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
    const value = await this.#options.validate();
    const early = afterValidation(this.#state.early, { value, step: this.#step, epoch });
    this.#state.early = early;
    const best = early.best?.step === this.#step;
    this.#emit({ kind: 'validation', step: this.#step, epoch, metric, value, best, seconds: this.#tick() });
  }

  async #save(): Promise<void> {
    if (this.#savedAt === this.#step) return;
    const started = performance.now();
    const { learner } = this.#options;
    this.#tick();
    const state: TrainingState = { ...this.#state, cost: this.#cost.state };
    const path = await this.#checkpoints.write({ step: this.#step, state, files: learner.files() });
    this.#savedAt = this.#step;
    this.#checkpoints.prune(this.#config.checkpoint.keep, this.#state.early.best?.step);
    this.#emit({ kind: 'checkpoint', step: this.#step, path, seconds: (performance.now() - started) / 1000 });
  }

  #restore(checkpoint: Checkpoint): void {
    this.#options.learner.restore(checkpoint);
    this.#step = checkpoint.step;
    this.#savedAt = checkpoint.step;
    const { cost, ...state } = STATE.parse(checkpoint.state);
    this.#state = state;
    this.#cost = CostFit.restore(cost);
  }

  #describe(): RunEvent {
    const { run, source, learner } = this.#options;
    const { users, items, fingerprint } = source;
    const { denseParameters, tableParameters } = learner.model.counts;
    return {
      kind: 'run',
      step: 0,
      data: { users, items, trainTokens: this.#plan.tokens, fingerprint },
      model: { kind: learner.model.definition.kind, denseParameters, tableParameters },
      config: run.description.config,
      threads: learner.model.device.stats().threads,
    };
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
    this.#log.append(event);
    this.#options.onEvent?.(event);
  }
}
