// Steps of a rank as the trainer runs them: the next one is enqueued before the loss of the last one is read.

import type { Communicator } from '../../dist/comm/communicator.js';
import { formGroups, type RankGroups } from '../../dist/shard/rank-groups.js';
import type { Device } from '../../native/device.js';
import type { Learner, OpenedStep } from '../../train/learner.js';
import { laneBatch, learnerOf, type RankCase } from './rank-case.js';
import { type StepTimes, timesOf } from './step-shares.js';

/** For the learning rate's schedule, which is constant. */
const MANY = 1_000_000;

export class StepLoop {
  readonly learner: Learner;
  readonly #device: Device;
  readonly #size: RankCase;
  /** Steps that were begun. */
  #step = 0;
  readonly #opened: OpenedStep[] = [];

  /** Collective. */
  static async open(device: Device, size: RankCase, world: Communicator): Promise<StepLoop> {
    return new StepLoop(device, size, await formGroups(world, size.settings?.groupSize));
  }

  private constructor(device: Device, size: RankCase, groups: RankGroups) {
    this.#device = device;
    this.#size = size;
    this.learner = learnerOf(device, size, groups);
  }

  /** So many steps, with the streams idle before and after. Collective. */
  async run(steps: number): Promise<StepTimes> {
    const device = this.#device;
    await device.sync();
    device.recordSpans(true);
    const start = performance.now();
    let last: Promise<number> | undefined;
    for (let i = 0; i < steps; i++) {
      const { loss } = await this.#enqueue();
      await last;
      last = loss;
    }
    await last;
    await device.sync();
    const wall = (performance.now() - start) / 1000;
    const { spans } = device.spans();
    device.recordSpans(false);
    return timesOf(spans, wall);
  }

  /** The next step, and those whose rows are fetched meanwhile. */
  #enqueue() {
    while (this.#opened.length <= this.learner.ahead) this.#opened.push(this.#open());
    return this.learner.run(this.#opened.shift()!);
  }

  #open(): OpenedStep {
    const { from, to } = this.learner.lanes;
    const { lanes, tokens } = this.#size;
    const step = ++this.#step;
    const batches = Array.from({ length: lanes }, (_, lane) =>
      lane >= from && lane < to ? laneBatch(this.#size, step, lane) : undefined,
    );
    return this.learner.open(batches, { step, totalSteps: MANY, laneTokens: batches.map(() => tokens) });
  }
}
