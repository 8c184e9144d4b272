// One optimiser step: the stages of its lanes, in the order of a schedule, and the sum of their gradients in the order of
// the lane tree. Everything is enqueued; nothing here waits.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Model } from '../nn/model.js';
import type { Gradients, GradientSums } from '../optim/gradients.js';
import type { Optimizer, StepRates } from '../optim/optimizer.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import { type LaneRange, LaneSum } from './lane-tree.js';
import { LaneWork } from './lane-work.js';
import type { Objective } from './objective.js';
import type { RankSum, Wishes } from './rank-sum.js';
import { type ScheduledStage, STAGES } from './stages.js';

/** What steps share. */
export interface StepParts {
  device: Device;
  model: Model;
  objective: Objective;
  optimizer: Optimizer;
  gradients: GradientSums;
  seed: number;
  encoderDraws: number;
  staged: boolean;
  /** How gradients of several ranks are summed; absent on a rank of its own. */
  rankSum?: RankSum | undefined;
  /** Where losses are gathered, in the order of the steps. */
  lossRanks: Communicator;
}

export interface StepInput {
  /** By lane; nothing for a lane without work. */
  batches: readonly (JaggedBatch | undefined)[];
  lanes: number;
  /** The lanes that this rank computes. */
  range: LaneRange;
  /** Tokens of all lanes: what losses are divided by. */
  tokens: number;
  rates: StepRates;
  /** Whether the lanes' negatives are counted, for the log. */
  count?: boolean;
}

/** Per trained token: draws that count once, masked ones, and repetitions. */
export interface NegativeCounts {
  effective: number;
  masked: number;
  repeated: number;
}

export class StepRun {
  readonly #parts: StepParts;
  readonly #input: StepInput;
  readonly #work = new Map<number, LaneWork>();
  readonly #sum: LaneSum<Gradients>;
  readonly #losses: (Promise<Float32Array> | undefined)[] = [];
  readonly #counts: Promise<BigInt64Array>[] = [];
  /** Lanes that are in the sum. */
  #summed: number;
  #stream: StreamName = 'compute';

  constructor(parts: StepParts, input: StepInput) {
    this.#parts = parts;
    this.#input = input;
    this.#summed = input.range.from;
    this.#sum = new LaneSum(input.lanes, (left, right) => parts.gradients.add(left, right, this.#stream));
  }

  run(stages: readonly ScheduledStage[]): void {
    const { device } = this.#parts;
    for (const { stage, lane, stream } of stages) {
      device.tag(lane ?? -1, STAGES.indexOf(stage));
      if (stage === 'apply' || lane === undefined) this.#apply();
      else if (stage === 'dense') this.#dense(lane);
      else if (stage === 'reduce') this.#reduce(lane, stream);
      else this.#lane(lane)[stage](stream);
    }
    device.tag(-1);
  }

  /** Sums and applies the gradients of all ranks; `run` has done it on a rank of its own. */
  async finish(wishes: Wishes): Promise<Wishes> {
    const { rankSum, optimizer, gradients } = this.#parts;
    if (!rankSum) return wishes;
    const { lanes, range, rates } = this.#input;
    this.#skipTo(range.to);
    const { gradients: total, ...agreed } = await rankSum.total(lanes, this.#sum.partials, wishes);
    if (total) gradients.release(optimizer.apply(total, rates));
    return agreed;
  }

  /** The mean loss over all tokens of the step; parts are added in the order of the lane tree. */
  async loss(): Promise<number> {
    const { lanes } = this.#input;
    const own = await Promise.all(this.#losses.map(async (part, lane) => [lane, (await part)?.[0]] as const));
    const all = (await gatherJson(this.#parts.lossRanks, own)).flat();
    const byLane = new Map(all.filter(pair => pair !== null));
    const sum = new LaneSum<number>(lanes, (left, right) => left + right);
    for (let lane = 0; lane < lanes; lane++) sum.put(lane, byLane.get(lane) ?? undefined);
    return sum.total() ?? 0;
  }

  /** What was counted over this rank's lanes. */
  async counts(): Promise<NegativeCounts | undefined> {
    const parts = await Promise.all(this.#counts);
    const tokens = this.#input.batches.reduce((sum, batch) => sum + (batch?.item.length ?? 0), 0);
    if (parts.length === 0 || tokens === 0) return undefined;
    const per = (which: number): number => parts.reduce((sum, part) => sum + Number(part[which]), 0) / tokens;
    const [masked, repeated] = [per(1), per(2)];
    return { effective: per(0) - masked - repeated, masked, repeated };
  }

  #lane(lane: number): LaneWork {
    const known = this.#work.get(lane);
    if (known) return known;
    const { rates, lanes, batches } = this.#input;
    const made = new LaneWork({ ...this.#parts, input: batches[lane]!, key: rates.step * lanes + lane });
    this.#work.set(lane, made);
    return made;
  }

  #dense(lane: number): void {
    const loss = this.#lane(lane).dense(this.#input.tokens);
    this.#losses[lane] = this.#parts.device.read(loss);
    const counts = this.#input.count ? this.#lane(lane).counts() : undefined;
    if (counts) this.#counts.push(this.#parts.device.read(counts));
  }

  #reduce(lane: number, stream: StreamName): void {
    const { gradients } = this.#parts;
    const work = this.#lane(lane);
    this.#stream = stream;
    this.#skipTo(lane);
    // The only lane of a step is not reduced: the update sums its contributions itself, and the lane lives until then.
    const alone = this.#input.lanes === 1;
    this.#sum.put(lane, gradients.take({ staged: work.staged, reduce: !alone, stream }));
    this.#summed = lane + 1;
    if (!alone) work.dispose();
  }

  #apply(): void {
    const { gradients, optimizer, rankSum } = this.#parts;
    if (rankSum) return;
    this.#skipTo(this.#input.lanes);
    const total = this.#sum.total();
    if (total) gradients.release(optimizer.apply(total, this.#input.rates));
    for (const work of this.#work.values()) work.dispose();
  }

  /** Lanes without work before this one. */
  #skipTo(lane: number): void {
    while (this.#summed < lane) this.#sum.put(this.#summed++, undefined);
  }
}
