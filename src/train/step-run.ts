// One optimiser step: the stages of its lanes, in the order of a schedule, and the sum of their gradients in the order of
// the lane tree. Everything is enqueued; the only waits are for host messages between ranks.

import { gatherJson } from '../dist/comm/communicator.js';
import type { StreamName } from '../native/call.js';
import {
  deferIfSmaller,
  type DeferRule,
  type GradientSums,
  type TableGradients,
  type Trained,
} from '../optim/gradients.js';
import { type GradientsToApply, localGradients, type Optimizer, type StepRates } from '../optim/optimizer.js';
import { PackedWeights } from '../ops/pack-weight.js';
import type { RowList } from '../ops/row-list.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import { LaneGradients } from './lane-gradients.js';
import { type LaneRange, LaneSum, lanesOf } from './lane-tree.js';
import { LaneWork } from './lane-work.js';
import type { Wishes } from './rank-nodes.js';
import type { RankSum } from './rank-sum.js';
import type { ReplicaCheck, ReplicaDigests } from './replica-check.js';
import { type LaneStage, type Round, type ScheduledStage, type StageName, STAGES } from './stages.js';
import { type RowParts, StepRows } from './step-rows.js';

/** State shared by all steps. */
export interface StepParts extends RowParts {
  trained: Trained;
  optimizer: Optimizer;
  gradients: GradientSums;
  seed: number;
  encoderDraws: number;
  /** Whether lanes read copies of their rows instead of the table. */
  staged: boolean;
  /** Sums gradients over ranks; absent for a single rank. */
  rankSum?: RankSum | undefined;
  replicaCheck?: ReplicaCheck | undefined;
}

export interface StepInput {
  /** By lane; undefined for an empty lane. */
  batches: readonly (JaggedBatch | undefined)[];
  lanes: number;
  /** Tokens of each lane, on all ranks. */
  laneTokens: readonly number[];
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

/** Results of a step, over all ranks. */
export interface StepFigures {
  /** Mean over all tokens of the step, summed in the order of the lane tree. */
  loss: number;
  /** Rows fetched ahead: how many, and how many of them an update changed meanwhile. */
  rows: { read: number; changed: number };
}

export class StepRun {
  readonly #parts: StepParts;
  readonly #input: StepInput;
  readonly #range: LaneRange;
  readonly #work = new Map<number, LaneWork>();
  readonly #rows: StepRows;
  /** Where several lanes of this rank use the weights before they change. */
  readonly #packed: PackedWeights | undefined;
  readonly #sum: LaneGradients;
  readonly #losses: (Promise<Float32Array> | undefined)[] = [];
  readonly #counts: Promise<BigInt64Array>[] = [];
  #changed: Promise<BigInt64Array> = Promise.resolve(BigInt64Array.of(0n, 0n));
  #replicas: Promise<ReplicaDigests> | undefined;
  /** The step whose rows are fetched while this one computes, if rows that both read are updated first. */
  #next: { run: StepRun; stream: StreamName } | undefined;
  #caughtUp = false;
  /** Stream on which rows are fetched. */
  #rowStream: StreamName = 'compute';
  /** Lanes summed so far. */
  #summed: number;

  constructor(parts: StepParts, input: StepInput) {
    this.#parts = parts;
    this.#input = input;
    const { rank, size } = parts.groups.world;
    this.#range = lanesOf(input.lanes, rank, size);
    this.#summed = this.#range.from;
    this.#rows = new StepRows(parts, { step: input.rates.step, laneTokens: input.laneTokens });
    if (this.#range.to - this.#range.from > 1) this.#packed = new PackedWeights(parts.device);
    this.#sum = new LaneGradients(input.lanes, parts.gradients, parts.trained);
  }

  /** This rank's rounds: its non-empty lanes and, if other ranks request rows from it, the remaining ones. */
  get rounds(): Round[] {
    const { from, to } = this.#range;
    const most = Math.ceil(this.#input.lanes / this.#parts.groups.world.size);
    const all = Array.from({ length: most }, (_, number): Round => {
      const lane = from + number;
      const busy = lane < to && (this.#input.batches[lane]?.item.length ?? 0) > 0;
      return { number, lane: busy ? lane : undefined };
    });
    return this.#parts.divided ? all : all.filter(({ lane }) => lane !== undefined);
  }

  run(stages: readonly ScheduledStage[]): void {
    for (const { stage, round, stream } of stages) {
      const { lane } = round;
      this.#begin(stage, stream, lane);
      if (stage === 'rows') this.#rowStream = stream;
      if (lane === undefined) this.#answer(stage, round);
      else if (stage === 'dense') this.#dense(lane, round);
      else if (stage === 'reduce') this.#reduce(lane, stream);
      else this.#lane(lane, round)[stage](stream);
    }
    this.#end();
  }

  /** Rows that both this step and `next` read will be summed, applied and sent again before all others. Collective. */
  precede(next: StepRun, stream: StreamName): void {
    this.#begin('rows', stream);
    this.#rows.meet(next.#rows, stream);
    this.#next = { run: next, stream };
    this.#end();
  }

  /** Rows were fetched before the last updates: which of them those changed, and, if exact, their new values. */
  catchUp(stream: StreamName): void {
    const changed = this.#parts.stale.changed(this.#input.rates.step);
    if (changed.length === 0 || this.#caughtUp) return;
    this.#caughtUp = true;
    this.#begin('rows', stream);
    this.#changed = this.#rows.catchUp(changed, stream);
    this.#end();
    this.#changed.catch(() => undefined); // the same error as the loss's
  }

  /** Sums the gradients of all ranks and applies them. */
  async finish(wishes: Wishes): Promise<Wishes> {
    const { rankSum, replicaCheck } = this.#parts;
    const { lanes, rates } = this.#input;
    this.#begin('apply', 'compute');
    this.#packed?.dispose();
    this.#skipTo(this.#range.to);
    let agreed = wishes;
    let total: GradientsToApply | undefined;
    if (rankSum)
      ({ gradients: total, ...agreed } = await rankSum.total(lanes, this.#sum.partials, wishes, this.#rows.first));
    else total = this.#alone();
    this.#begin('apply', 'compute'); // other work may have been enqueued meanwhile
    if (total) this.#apply(total);
    for (const work of this.#work.values()) work.dispose();
    this.#rows.dispose();
    this.#next = undefined;
    this.#end();
    this.#replicas = replicaCheck?.digests(rates.step);
    this.#replicas?.catch(() => undefined); // the same error as the loss's
    return agreed;
  }

  /** Call when the step is finished; `before` are the previous step's figures: ranks must gather in the same order. */
  async figures(before: Promise<unknown>): Promise<StepFigures> {
    const { lanes, rates } = this.#input;
    const { replicaCheck, groups } = this.#parts;
    const losses = await Promise.all(this.#losses.map(async (part, lane) => [lane, (await part)?.[0]] as const));
    const rows = Array.from(await this.#changed, Number);
    const replicas = (await this.#replicas) ?? null;
    await before;
    const all = await gatherJson(groups.figures, { losses, rows, replicas });
    if (replicas)
      replicaCheck?.compare(
        rates.step,
        all.map(rank => rank.replicas!),
      );
    const byLane = new Map(all.flatMap(rank => rank.losses).filter(pair => pair !== null));
    const sum = new LaneSum<number>(lanes, (left, right) => left + right);
    for (let lane = 0; lane < lanes; lane++) sum.put(lane, byLane.get(lane) ?? undefined);
    const total = (which: number): number => all.reduce((so, rank) => so + rank.rows[which]!, 0);
    return { loss: sum.total() ?? 0, rows: { read: total(0), changed: total(1) } };
  }

  /** Counts over this rank's lanes. */
  async counts(): Promise<NegativeCounts | undefined> {
    const parts = await Promise.all(this.#counts);
    const tokens = this.#input.batches.reduce((sum, batch) => sum + (batch?.item.length ?? 0), 0);
    if (parts.length === 0 || tokens === 0) return undefined;
    const per = (which: number): number => parts.reduce((sum, part) => sum + Number(part[which]), 0) / tokens;
    const [masked, repeated] = [per(1), per(2)];
    return { effective: per(0) - masked - repeated, masked, repeated };
  }

  #lane(lane: number, round: Round): LaneWork {
    const known = this.#work.get(lane);
    if (known) return known;
    const { rates, lanes, batches } = this.#input;
    const made = new LaneWork({
      ...this.#parts,
      input: batches[lane]!,
      key: rates.step * lanes + lane,
      packed: this.#packed,
      fetch: this.#parts.staged ? (ids, stream) => this.#rows.fetch(ids, round, stream) : undefined,
      fetchHalves: this.#parts.halves ? (ids, stream) => this.#rows.fetchHalves(ids, round, stream) : undefined,
      fetchSegment: this.#parts.segmented
        ? (wanted, stream) => this.#rows.fetchSegment(wanted, wanted.number, round, stream)
        : undefined,
    });
    this.#work.set(lane, made);
    return made;
  }

  /** A round without a lane: answers the requests of others. */
  #answer(stage: LaneStage, round: Round): void {
    if (stage === 'dense') {
      this.#answerSegments(round, 0);
      return;
    }
    this.#rows.fetch(undefined, round, this.#rowStream);
    if (this.#parts.halves) this.#rows.fetchHalves(undefined, round, this.#rowStream);
  }

  /** Answers the requests for segments of negatives that this rank's lane does not have. */
  #answerSegments(round: Round, from: number): void {
    if (!this.#parts.segmented) return;
    const all = this.#rows.segments(round);
    for (let number = from; number < all; number++) this.#rows.fetchSegment(undefined, number, round, this.#rowStream);
  }

  #dense(lane: number, round: Round): void {
    const { device } = this.#parts;
    const { laneTokens, count } = this.#input;
    const work = this.#work.get(lane)!;
    const loss = work.dense(laneTokens.reduce((sum, tokens) => sum + tokens, 0));
    this.#answerSegments(round, work.segments);
    this.#losses[lane] = device.read(loss);
    const counts = count ? work.counts() : undefined;
    if (counts) this.#counts.push(device.read(counts));
  }

  #reduce(lane: number, stream: StreamName): void {
    const { staged } = this.#work.get(lane)!;
    this.#skipTo(lane);
    this.#sum.take({ staged, lane, defer: this.#defer, stream });
    this.#summed = lane + 1;
    const { firstDeferred } = this.#sum;
    for (const [done, work] of this.#work) {
      if (done <= lane && done < firstDeferred) work.dispose();
    }
  }

  /** Lists are needed for later steps, for other ranks, and for a norm computed before the update. */
  get #defer(): DeferRule {
    const { stale, rankSum, optimizer, segmented, model } = this.#parts;
    if (segmented) return source => source === model.items; // the contributions are sent to the owners of the rows
    if (stale.ahead > 0) return () => false;
    if (this.#input.lanes === 1) return () => true; // the update sums the contributions itself
    return rankSum || optimizer.clips ? () => false : deferIfSmaller;
  }

  /** The sum, where one rank computes all lanes. */
  #alone(): GradientsToApply | undefined {
    const total = this.#sum.total();
    return total && { dense: localGradients(total.dense), tables: () => total.tables };
  }

  #apply(total: GradientsToApply): void {
    const { gradients, optimizer, rankSum, stale } = this.#parts;
    const { rates } = this.#input;
    let remembered: RowList | undefined;
    let later: TableGradients = [];
    const tables = (): TableGradients => {
      const summed = total.tables();
      const [items] = summed;
      if (stale.ahead > 0 && items?.kind === 'rows') stale.remember(rates.step, (remembered = items.list));
      return summed;
    };
    // Rows that the next step reads are sent before the other rows are summed.
    const rest = (): TableGradients => {
      this.#next?.run.catchUp(this.#next.stream);
      return (later = total.later!());
    };
    const [items, ...others] = optimizer.apply({ ...total, tables, later: total.later && rest }, rates);
    const dense = rankSum ? [] : total.dense.all(); // of several ranks: returned when they were sent
    remembered?.rows.dispose(); // the ids are kept
    gradients.release({ dense, tables: [remembered ? undefined : items, ...others] });
    gradients.release({ dense: [], tables: later });
  }

  /** Labels what is enqueued from now on with a stage. With several ranks, streams do not share memory, so that none waits for another's exchange. */
  #begin(stage: StageName, stream: StreamName, lane = -1): void {
    const { device, rankSum } = this.#parts;
    device.tag(lane, STAGES.indexOf(stage));
    device.home(rankSum && stream);
  }

  #end(): void {
    this.#parts.device.tag(-1);
    this.#parts.device.home();
  }

  /** Lanes without work before this one. */
  #skipTo(lane: number): void {
    while (this.#summed < lane) this.#sum.skip(this.#summed++);
  }
}
