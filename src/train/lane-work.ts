// One lane of a step on its way through the stages: what each stage leaves for the next. The lane's tape owns everything
// the lane allocates.
//
// T tokens, R negatives per token, U distinct rows that the lane reads.

import type { RowFetch } from '../dist/shard/row-fetch.js';
import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { BatchTensors } from '../nn/batch-tensors.js';
import type { Draws } from '../negatives/negative-sampler.js';
import type { WantedRows } from '../negatives/negative-segments.js';
import type { Model } from '../nn/model.js';
import type { MaskedEvents } from '../ops/mask-negatives.js';
import type { PackedWeights } from '../ops/pack-weight.js';
import { readAhead } from '../ops/read-ahead.js';
import type { RowSource } from '../ops/row-source.js';
import { spreadRows } from '../ops/half-rows.js';
import { StagedRows, stageRows, type UniqueIds, uniqueIds } from '../ops/staged-rows.js';
import type { Table } from '../ops/table.js';
import { Tape } from '../ops/tape.js';
import type { GradedRows } from '../optim/gradients.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import type { Tensor } from '../tensor/tensor.js';
import type { Objective } from './objective.js';

export interface LaneOptions {
  device: Device;
  model: Model;
  objective: Objective;
  input: JaggedBatch;
  /** Key of the lane's random numbers: a function of (seed, step, lane) only. */
  seed: number;
  key: number;
  /** Number of random ops in the encoder: the draw of negatives is keyed after them, although it may run before. */
  encoderDraws: number;
  /** Weights that the lanes of the step share. */
  packed?: PackedWeights | undefined;
  /** Fetches copies of rows by ascending ids, which it takes ownership of; if absent, the lane reads the table itself. */
  fetch?: ((ids: Tensor<'i32'>, stream: StreamName) => RowFetch) | undefined;
  /** The same in FP16, for rows of negatives; if absent, they are fetched with the others. */
  fetchHalves?: ((ids: Tensor<'i32'>, stream: StreamName) => RowFetch) | undefined;
  /** Fetches the rows of a segment of negatives while the loss computes; if absent, they are fetched before. */
  fetchSegment?: ((wanted: WantedRows, stream: StreamName) => void) | undefined;
}

/** What a lane's ops read. */
interface LaneRows {
  input: { rows: RowSource; ids: Tensor<'i32'> };
  rows: RowSource;
  events: MaskedEvents;
  /** The draws. */
  ids: Tensor<'i32'> | undefined;
  positiveRows?: Tensor<'i32'>;
}

export class LaneWork {
  readonly #options: LaneOptions;
  readonly #tape: Tape;
  #batch: BatchTensors | undefined;
  #draws: Draws | undefined;
  #unique: UniqueIds | undefined;
  /** Ids of rows fetched unrounded, and of those fetched in FP16. */
  #apart: { whole: Tensor<'i32'>; halves: Tensor<'i32'> } | undefined;
  #staged: StagedRows | undefined;
  #logq: Tensor<'f32'> | undefined;
  #segments = 0;
  /** Stream on which rows are fetched. */
  #rowStream: StreamName = 'compute';

  constructor(options: LaneOptions) {
    const { device, seed, key, packed } = options;
    this.#options = options;
    this.#tape = new Tape(device, { training: true, seed, step: key, packed });
    this.#logq = options.objective.logq;
  }

  /** Uploads the batch and draws its negatives. */
  read(stream: StreamName): void {
    const { model, objective, input, seed, key, encoderDraws } = this.#options;
    this.#batch = this.#tape.own(model.upload(input, stream));
    const draw: RandomKey = { seed, step: key, purpose: encoderDraws };
    this.#draws = objective.draw(this.#events, draw, stream);
    if (this.#draws) this.#tape.own(this.#draws.ids);
    if (this.#draws?.kind === 'groups') this.#tape.own(this.#draws.members);
    this.#readAhead(stream);
  }

  /** Prefetches the lane's rows of a memory-mapped table while another lane computes. */
  #readAhead(stream: StreamName): void {
    const { device, model } = this.#options;
    if (model.items.mappedIn === undefined) return;
    const { items, targets } = this.#batch!;
    readAhead(device, model.items.value, [items, targets!, ...(this.#draws ? [this.#draws.ids] : [])], stream);
  }

  /** Determines the distinct rows that the lane reads; does nothing when it reads the table directly. */
  exchange(stream: StreamName): void {
    const { device, model, fetch, fetchHalves, fetchSegment } = this.#options;
    const { items, targets } = this.#batch!;
    if (!fetch || !this.#draws) return;
    const { vocabulary } = model.items;
    const different = (...of: Tensor<'i32'>[]): Tensor<'i32'> => {
      const { ids, places } = uniqueIds(device, { of }, vocabulary, stream);
      for (const unused of places) unused.dispose();
      return ids;
    };
    const { ids } = this.#draws;
    if (fetchSegment) {
      this.#unique = this.#own(uniqueIds(device, { of: [items, targets!] }, vocabulary, stream));
      return;
    }
    if (fetchHalves) this.#apart = { whole: different(items, targets!), halves: different(ids) };
    const also = this.#apart && [this.#apart.whole, this.#apart.halves];
    this.#unique = this.#own(
      uniqueIds(device, { of: [items, targets!, ids], ...(also && { also }) }, vocabulary, stream),
    );
  }

  #own(unique: UniqueIds): UniqueIds {
    for (const places of unique.places) this.#tape.own(places);
    return unique;
  }

  /** Fetches copies of those rows. Rows of negatives that the loss reads in segments are fetched in `dense`. */
  rows(stream: StreamName): void {
    this.#rowStream = stream;
    if (!this.#unique) return;
    const { device, fetch, fetchSegment } = this.#options;
    const { ids } = this.#unique;
    this.#staged = this.#apart ? this.#putTogether(ids, stream) : this.#tape.own(fetch!(ids, stream)).staged;
    if (this.#logq && !fetchSegment)
      this.#logq = this.#tape.own(stageRows(device, { from: this.#logq, ids, dtype: 'f32' }, stream));
  }

  /** Rows read only as negatives are fetched in FP16, to which the loss rounds them anyway. */
  #putTogether(ids: Tensor<'i32'>, stream: StreamName): StagedRows {
    const { device, model, fetch, fetchHalves } = this.#options;
    const [wholePlaces, halfPlaces] = this.#unique!.places.slice(-2);
    const whole = fetch!(this.#apart!.whole, stream);
    const halves = fetchHalves!(this.#apart!.halves, stream);
    const to = device.tensor([ids.size, model.items.value.cols]);
    spreadRows(device, { ...halves.halves!, places: halfPlaces!, to }, stream);
    spreadRows(device, { rows: whole.staged!.value, places: wholePlaces!, to }, stream);
    whole.dispose();
    halves.dispose();
    return this.#tape.own(new StagedRows(device, model.items, ids, { rows: to }));
  }

  /** Forward, loss and backward; the loss, [1, 1], lives as long as the lane. */
  dense(meanOver: number): Tensor<'f32'> {
    const { device, model, objective, fetchSegment } = this.#options;
    const tape = this.#tape;
    const batch = this.#batch!;
    const { input, ids, ...read } = fetchSegment ? this.#bySegments() : this.#atOnce();
    const stream = this.#rowStream;
    const fetch = fetchSegment && ((wanted: WantedRows) => fetchSegment(wanted, stream));
    // Requested before the encoder runs, and after the previous lane's loss has released the buffers.
    const segments = ids && objective.segments(device, { rows: read.rows, ids, stream, fetch });
    if (segments) tape.own(segments);
    const states = model.encode(tape, batch, input);
    const logq = this.#logq && { logq: this.#logq };
    const loss = this.#draws
      ? objective.sampled(
          tape,
          { states, meanOver },
          { ...read, draws: { ...this.#draws, ids: ids! }, segments, ...logq },
        )
      : objective.full(tape, { states, meanOver }, batch.targets!);
    tape.backward();
    this.#segments = segments?.count ?? 0;
    return loss;
  }

  /** Segments of negatives that `dense` fetched. */
  get segments(): number {
    return this.#segments;
  }

  /** All rows are in the table, or have been staged. */
  #atOnce(): LaneRows {
    const { items, targets } = this.#batch!;
    const [input, positives, ids] = this.#unique?.places ?? [items, targets!, this.#draws?.ids];
    const rows = this.#staged ?? this.#options.model.items;
    return { input: { rows, ids: input! }, rows, events: { ...this.#events, items: input!, targets: positives! }, ids };
  }

  /** Rows of inputs and positives are staged. Ids, and the gradient, are those of the whole table: its owners sum it. */
  #bySegments(): LaneRows {
    const table = this.#options.model.items;
    const { value } = this.#staged!;
    const [input, positiveRows] = this.#unique!.places;
    const events = this.#events;
    const rows: RowSource = {
      name: table.name,
      vocabulary: table.vocabulary,
      value,
      contribute: contribution => table.contribute(contribution),
    };
    const read: RowSource = {
      ...rows,
      contribute: contribution => table.contribute({ ...contribution, ids: events.items }),
    };
    return { input: { rows: read, ids: input! }, rows, events, ids: this.#draws!.ids, positiveRows: positiveRows! };
  }

  /** The copies that were read instead of the table, and have its gradient. */
  get staged(): ReadonlyMap<Table, GradedRows> {
    const { model, fetchSegment } = this.#options;
    return new Map(this.#staged && !fetchSegment ? [[model.items, this.#staged]] : []);
  }

  /** Draws, masked and repeated ones of the lane, for the log. */
  counts(): Tensor<'i64'> | undefined {
    const { device, objective } = this.#options;
    const counts = this.#draws && objective.count(device, { events: this.#events, draws: this.#draws });
    return counts && this.#tape.own(counts);
  }

  get #events(): MaskedEvents {
    const { items, targets, tokens } = this.#batch!;
    return { items, targets: targets!, offsets: tokens.offsets };
  }

  dispose(): void {
    this.#tape.dispose();
  }
}
