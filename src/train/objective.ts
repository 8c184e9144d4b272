// The training objective: the configured loss over a lane's states, with negatives where it needs them.
//
// T tokens, R negatives per token, U distinct rows that the lane reads.

import type { LossConfig } from '../config/schema.js';
import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { type Draws, NegativeSampler } from '../negatives/negative-sampler.js';
import { NegativeSegments, type WantedRows } from '../negatives/negative-segments.js';
import { SegmentBuffers } from '../negatives/segment-buffers.js';
import { fetchesBeside, positionsPerSegment } from '../negatives/segment-size.js';
import type { Scorer } from '../nn/scorer.js';
import { bce } from '../ops/bce.js';
import { fullSoftmax } from '../ops/full-softmax.js';
import { countNegatives } from '../ops/count-negatives.js';
import { gbce } from '../ops/gbce.js';
import type { MaskedEvents } from '../ops/mask-negatives.js';
import { pooledLoss } from '../ops/pooled-loss.js';
import type { RowSource } from '../ops/row-source.js';
import { LEAST_LENGTH, type SampledOptions } from '../ops/sampled-loss.js';
import { sampledSoftmax } from '../ops/sampled-softmax.js';
import { type SampledObjective, sharedLoss } from '../ops/shared-loss.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';

/** What a lane is scored against: ids index `rows`, or the whole table. */
export interface LossRows {
  readonly rows: RowSource; // [U, D]
  readonly events: MaskedEvents;
  readonly draws: Draws;
  /** Log of each id's sampling probability, if the loss corrects for it. */
  readonly logq?: Tensor<'f32'>; // [U, 1]
  /** The rows of negatives, if the loss does not read them from `rows`. */
  readonly segments?: NegativeSegments | undefined;
  /** The positives' rows in `rows`, if ids are those of the whole table. */
  readonly positiveRows?: Tensor<'i32'> | undefined; // [T]
}

/** The source of a lane's rows of negatives. */
export interface SegmentInput {
  readonly rows: RowSource;
  /** The draws, as rows of the source. */
  readonly ids: Tensor<'i32'>;
  readonly stream: StreamName;
  /** Fetches a segment from the owners of its rows; default: it is copied from the source. */
  readonly fetch?: ((wanted: WantedRows) => void) | undefined;
}

export interface ObjectiveInput {
  states: Tensor<'f32'>; // [T, D]
  /** What the summed loss is divided by: the tokens of all lanes of the step. */
  meanOver: number;
}

export interface ObjectiveOptions {
  device: Device;
  scorer: Scorer;
  config: LossConfig;
  /** [V] training events of each item, for popularity sampling. */
  counts: Int32Array;
}

export class Objective {
  readonly #config: LossConfig;
  readonly #scorer: Scorer;
  readonly #sampler: NegativeSampler | undefined;
  readonly #buffers: SegmentBuffers;
  /** For segments that this rank sends to others. */
  readonly answers: SegmentBuffers;

  constructor({ device, scorer, config, counts }: ObjectiveOptions) {
    if (config.kind === 'auto') throw new Error('loss.kind = auto is chosen before training, see chooseLoss');
    this.#config = config;
    this.#scorer = scorer;
    this.#buffers = new SegmentBuffers(device, config.negatives.storage);
    this.answers = new SegmentBuffers(device, config.negatives.storage);
    if (config.kind !== 'full-softmax') this.#sampler = new NegativeSampler(device, config.negatives, counts);
  }

  /** [V, 1] log of each item's sampling probability, if the loss corrects for it. */
  get logq(): Tensor<'f32'> | undefined {
    return this.#config.kind === 'sampled-softmax' ? this.#sampler?.logq : undefined;
  }

  /** Upper bound on the rows that a lane of `tokens` reads; undefined for a loss over all items. */
  mostRows(tokens: number): number | undefined {
    return this.#sampler && 2 * tokens + this.mostDraws(tokens);
  }

  /** Upper bound on the rows that it draws as negatives. */
  mostDraws(tokens: number): number {
    const { positions, draws } = this.#sampler?.shape(tokens) ?? { positions: 0, draws: 0 };
    return positions * draws;
  }

  /** Draws of each segment of a lane of `tokens`, where `rows` are drawn from. */
  segmentDraws(tokens: number, rows: number): number[] {
    if (!this.#sampler || tokens === 0) return [];
    const { positions, draws } = this.#sampler.shape(tokens);
    const size = positionsPerSegment({ positions, draws, rows }, this.#config.negatives.segment);
    return Array.from({ length: Math.ceil(positions / size) }, (_, i) => draws * Math.min(size, positions - i * size));
  }

  /** By which rows of negatives are divided. */
  get normalizedEps(): number | undefined {
    return this.#scorer.logit.normalizeItem ? LEAST_LENGTH : undefined;
  }

  /** The lane's negatives, owned by the caller; undefined for a loss over all items. */
  draw(events: MaskedEvents, key: RandomKey, stream?: StreamName): Draws | undefined {
    return this.#sampler?.draw(events, key, stream);
  }

  /** Starts to fetch the rows of negatives, for the caller to own; undefined if the loss reads them in place. */
  segments(device: Device, { rows, ids, stream, fetch }: SegmentInput): NegativeSegments | undefined {
    const { segment: size } = this.#config.negatives;
    const { vocabulary, value } = rows;
    if (!fetchesBeside(this.#config.negatives, { rows: vocabulary, width: value.cols })) return undefined;
    const from = fetch ? { rows: vocabulary, cols: value.cols, fetch } : value;
    const { normalizedEps } = this;
    return new NegativeSegments({ device, buffers: this.#buffers, from, ids, size, normalizedEps, stream });
  }

  /** [1, 3] counts of draws, masked and repeated ones, over all trained tokens of a lane. Owned by the caller. */
  count(device: Device, { events, draws }: { events: MaskedEvents; draws: Draws }): Tensor<'i64'> {
    const counted = { positives: events.targets, negatives: draws.ids, history: this.#history(events) };
    if (draws.kind === 'tokens') return countNegatives(device, counted);
    if (draws.kind === 'groups') return countNegatives(device, { ...counted, members: draws.members });
    const { size } = events.targets;
    using everybody = device.from(
      Int32Array.from({ length: size }, (_, token) => token),
      [1, size],
    );
    return countNegatives(device, { ...counted, members: everybody });
  }

  /** [1, 1] the loss against sampled negatives. */
  sampled(tape: Tape, { states, meanOver }: ObjectiveInput, lane: LossRows): Tensor<'f32'> {
    const { rows, events, draws, logq, segments, positiveRows } = lane;
    const positives = events.targets;
    const logit = { ...this.#scorer.logit, meanOver, positives, positiveRows };
    const objective = this.#minimised(logq);
    const history = this.#history(events);
    switch (draws.kind) {
      case 'pool':
        return pooledLoss(tape, states, rows, { ...logit, pool: draws.ids, segments, objective, history });
      case 'groups': {
        const { of: share } = this.#config.negatives.sharing;
        const shared = { members: draws.members, negatives: draws.ids };
        return sharedLoss(tape, states, rows, { ...logit, draws: shared, segments, objective, share, history });
      }
      default:
        return plainLoss(tape, states, rows, { ...logit, negatives: draws.ids, segments, objective });
    }
  }

  /** [1, 1] the loss against all items. */
  full(tape: Tape, { states, meanOver }: ObjectiveInput, targets: Tensor<'i32'>): Tensor<'f32'> {
    const { items, logit } = this.#scorer;
    const { smoothing } = this.#config;
    return fullSoftmax(tape, states, items, { ...logit, smoothing, meanOver, positives: targets });
  }

  #minimised(logq: Tensor<'f32'> | undefined): SampledObjective {
    const { kind, calibration } = this.#config;
    if (kind === 'bce') return { kind };
    return kind === 'gbce' ? { kind, t: calibration } : { kind: 'sampled-softmax', logq };
  }

  #history(events: MaskedEvents): MaskedEvents | undefined {
    return this.#config.negatives.mask === 'history' ? events : undefined;
  }
}

function plainLoss(
  tape: Tape,
  states: Tensor<'f32'>,
  rows: RowSource,
  { objective, ...options }: SampledOptions & { objective: SampledObjective },
): Tensor<'f32'> {
  switch (objective.kind) {
    case 'bce':
      return bce(tape, states, rows, options);
    case 'gbce':
      return gbce(tape, states, rows, { ...options, t: objective.t });
    default:
      return sampledSoftmax(tape, states, rows, { ...options, ...(objective.logq && { logq: objective.logq }) });
  }
}
