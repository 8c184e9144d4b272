// Runs the steps of a rank as the trainer does: rows are fetched as far ahead as configured, and the next step is enqueued
// before the loss of the previous one is read.

import type { RankGroups } from '../../dist/shard/rank-groups.js';
import type { Span } from '../../events/chrome-trace.js';
import type { Device } from '../../native/device.js';
import type { JaggedBatch } from '../../tensor/jagged.js';
import type { Learner, OpenedStep } from '../../train/learner.js';
import type { StepFigures } from '../../train/step-run.js';
import { laneBatch, learnerOf, type RankCase } from './rank-case.js';
import { type TurnTimes, turnTimes } from './turn-shares.js';

/** For the learning rate schedule, which is constant. */
const MANY = 1_000_000;

type Batches = (JaggedBatch | undefined)[];

export class StepLoop {
  readonly #learner: Learner;
  readonly #device: Device;
  readonly #size: RankCase;
  /** Drawn before the clock starts: reading from a store is faster than drawing. */
  readonly #batches: Batches[] = [];
  readonly #opened: OpenedStep[] = [];
  /** Rows fetched ahead so far, and how many of them changed meanwhile. */
  readonly rows = { read: 0, changed: 0 };
  /** Spans of the last run. */
  spans: readonly Span[] = [];
  #step = 0;
  #drawn = 0;

  /** Collective. */
  constructor(device: Device, size: RankCase, groups: RankGroups) {
    this.#device = device;
    this.#size = size;
    this.#learner = learnerOf(device, size, groups);
    if (groups.world.size > 1) this.#learner.share();
  }

  /** Runs `steps` steps, with idle streams before and after. Collective. */
  async run(steps: number): Promise<TurnTimes> {
    const device = this.#device;
    while (this.#batches.length < steps + this.#learner.ahead) this.#batches.push(this.#draw());
    await device.sync();
    device.recordSpans(true);
    const start = performance.now();
    let last: Promise<StepFigures> | undefined;
    for (let i = 0; i < steps; i++) {
      const next = this.#opened.shift() ?? this.#open();
      const { figures } = await this.#learner.run(next, undefined, () => this.#openAhead());
      await this.#count(last);
      last = figures;
    }
    await this.#count(last);
    await device.sync();
    const wall = (performance.now() - start) / 1000;
    this.spans = device.spans().spans;
    device.recordSpans(false);
    return turnTimes(this.spans, wall);
  }

  async #count(figures: Promise<StepFigures> | undefined): Promise<void> {
    const { read, changed } = (await figures)?.rows ?? { read: 0, changed: 0 };
    this.rows.read += read;
    this.rows.changed += changed;
  }

  #openAhead(): void {
    while (this.#opened.length < this.#learner.ahead) this.#opened.push(this.#open());
  }

  #open(): OpenedStep {
    const { lanes, tokens } = this.#size;
    const laneTokens = Array.from({ length: lanes }, () => tokens);
    return this.#learner.open(this.#batches.shift()!, { step: ++this.#step, totalSteps: MANY, laneTokens });
  }

  /** The next step's batches of this rank's lanes. */
  #draw(): Batches {
    const { from, to } = this.#learner.lanes;
    const number = this.#drawn++;
    return Array.from({ length: this.#size.lanes }, (_, lane) =>
      lane >= from && lane < to ? laneBatch(this.#size, number, lane) : undefined,
    );
  }
}
