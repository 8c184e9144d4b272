// The next steps of a run, opened as far ahead as their rows are fetched: reads the batches of this rank's lanes and hands
// them to the learner.

import type { Cursor } from '../data/batch/batch-plan.js';
import type { BatchStream } from '../data/batch/batch-stream.js';
import type { Learner, OpenedStep } from './learner.js';
import type { LanePlace, StepPlan, StepPlans } from './step-plan.js';

export interface StepQueueOptions {
  learner: Learner;
  plans: StepPlans;
  /** This rank's lanes, from the next step on. */
  stream: BatchStream<LanePlace>;
  /** Total steps, for schedules. */
  totalSteps: number;
  /** Nothing is opened beyond this step or in this epoch. */
  ends: { step: number; epoch: number };
}

export interface QueuedStep {
  plan: StepPlan;
  opened: OpenedStep;
}

export class StepQueue {
  readonly #options: StepQueueOptions;
  readonly #opened: QueuedStep[] = [];

  constructor(options: StepQueueOptions) {
    this.#options = options;
  }

  /** The step after `done`, which begins at a cursor. */
  next(done: number, from: Cursor): QueuedStep {
    if (this.#opened.length === 0) this.#open(done + 1, from);
    return this.#opened.shift()!;
  }

  /** Opens the steps whose rows are fetched while step `running` is computed; `from`: where the next one begins. */
  openAhead(running: number, from: Cursor): void {
    const { learner, ends } = this.#options;
    while (this.#opened.length < learner.ahead) {
      const step = running + this.#opened.length + 1;
      const cursor = this.#opened.at(-1)?.plan.next ?? from;
      if (step > ends.step || cursor.epoch >= ends.epoch) return;
      this.#open(step, cursor);
    }
  }

  #open(step: number, cursor: Cursor): void {
    const { learner, plans, totalSteps } = this.#options;
    const plan = plans.at(cursor);
    const place = { step, totalSteps, laneTokens: plan.laneTokens };
    this.#opened.push({ plan, opened: learner.open(this.#batches(plan), place) });
  }

  #batches({ lanes }: StepPlan) {
    const { learner, stream } = this.#options;
    const { from, to } = learner.lanes;
    return lanes.map((ids, lane) => {
      const batch = lane >= from && lane < to ? stream.next() : undefined;
      return ids.length > 0 ? batch : undefined;
    });
  }
}
