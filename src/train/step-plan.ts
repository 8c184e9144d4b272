// What a step computes, known before it begins: the windows of each lane. A step takes the next `lanes` batches of the
// shuffled order, pools their windows and distributes them over the lanes as evenly by cost as possible, within each
// lane's limit. A pure function of (windows, config, epoch, position), so every rank knows the whole step without
// communication.

import type { BatchPlan, BatchSize, Cursor } from '../data/batch/batch-plan.js';
import type { BatchOrder } from '../data/batch/batch-stream.js';
import { type Windows, windowTokens } from '../data/batch/windows.js';
import type { CostModel } from '../dist/balance/cost.js';
import { reallocateWithin } from '../dist/balance/reallocate-within.js';
import type { LaneRange } from './lane-tree.js';

export interface StepPlan {
  /** The first of the step's batches in the shuffled order. */
  readonly at: Cursor;
  /** Where the next step begins. */
  readonly next: Cursor;
  /** Window ids of each lane, in reading order; an empty lane has none. */
  readonly lanes: readonly Int32Array[];
  /** Tokens of each lane. */
  readonly laneTokens: readonly number[];
  /** Tokens of the whole step: what losses are divided by. */
  readonly tokens: number;
}

export interface StepPlansOptions {
  batches: BatchPlan;
  size: BatchSize;
  lanes: number;
  /** Cost of sequences from the model's FLOPs; never from measured times, which differ between runs. */
  cost: CostModel;
}

/** Cached plans: reading ahead asks for the same steps repeatedly. */
const REMEMBERED = 4;

export class StepPlans {
  readonly windows: Windows;
  readonly lanes: number;
  /** Tokens that one epoch trains on. */
  readonly tokens: number;
  readonly #options: StepPlansOptions;
  readonly #recent = new Map<string, StepPlan>();

  constructor(options: StepPlansOptions) {
    this.#options = options;
    this.windows = options.batches.windows;
    this.lanes = options.lanes;
    this.tokens = options.batches.tokens;
  }

  /** Steps in an epoch. With a token budget it varies slightly between epochs, with the order. */
  steps(epoch: number): number {
    return Math.ceil(this.#options.batches.batches(epoch) / this.lanes);
  }

  /** The step that begins at a cursor. */
  at(cursor: Cursor): StepPlan {
    const key = `${cursor.epoch}/${cursor.position}`;
    const known = this.#recent.get(key);
    if (known) return known;
    const made = this.#plan(cursor);
    const [oldest] = this.#recent.keys();
    if (this.#recent.size === REMEMBERED) this.#recent.delete(oldest!);
    this.#recent.set(key, made);
    return made;
  }

  #plan(at: Cursor): StepPlan {
    const { batches } = this.#options;
    const count = Math.min(this.lanes, batches.batches(at.epoch) - at.position);
    const cuts = Array.from({ length: count }, (_, i) => batches.batch({ epoch: at.epoch, position: at.position + i }));
    const lanes = this.lanes === 1 ? cuts : this.#deal(cuts);
    const laneTokens = lanes.map(ids => ids.reduce((sum, id) => sum + windowTokens(this.windows, id), 0));
    const tokens = laneTokens.reduce((sum, lane) => sum + lane, 0);
    return { at, next: batches.advance(at, count), lanes, laneTokens, tokens };
  }

  /** Distributes the pooled windows over the lanes, each in pool order; the original batches if an even split does not fit. */
  #deal(cuts: readonly Int32Array[]): Int32Array[] {
    const { size, cost } = this.#options;
    const pool = cuts.flatMap(cut => [...cut]);
    const lengths = Int32Array.from(pool, id => windowTokens(this.windows, id));
    const limit = 'tokens' in size ? { tokens: size.tokens } : { sequences: size.users };
    const owner = reallocateWithin(lengths, this.lanes, cost, limit);
    const lane = (l: number): Int32Array =>
      owner ? Int32Array.from(pool.filter((_, i) => owner[i] === l)) : (cuts[l] ?? new Int32Array(0));
    return Array.from({ length: this.lanes }, (_, l) => lane(l));
  }
}

/** A lane of a step. */
export interface LanePlace extends Cursor {
  lane: number;
}

/** A worker's lanes in order, step by step; an empty lane is an empty batch. */
export class LaneOrder implements BatchOrder<LanePlace> {
  readonly windows: Windows;
  readonly #plans: StepPlans;
  readonly #range: LaneRange;

  /** Default: one worker that computes all lanes. */
  constructor(plans: StepPlans, range: LaneRange = { from: 0, to: plans.lanes }) {
    this.#plans = plans;
    this.#range = range;
    this.windows = plans.windows;
  }

  batch(place: LanePlace): Int32Array {
    return this.#plans.at(place).lanes[place.lane]!;
  }

  /** The worker's first lane of the step that begins at a cursor. */
  from(cursor: Cursor): LanePlace {
    return { epoch: cursor.epoch, position: cursor.position, lane: this.#range.from };
  }

  next(place: LanePlace): LanePlace {
    if (place.lane + 1 < this.#range.to) return { ...place, lane: place.lane + 1 };
    return this.from(this.#plans.at(place).next);
  }
}
