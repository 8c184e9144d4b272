// Applies a table's gradient: contributions are summed by row, in order, and passed to an optimiser (or a dense gradient)
// without storing gradient rows; gradient rows that are already summed are applied directly.
//
// V rows, U rows of a list, D width.

import type { Call, GradTarget, RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { AdamHyper } from './adamw.js';
import { writeContributions } from './embedding-reduce.js';
import type { Contribution, RowDtype, RowSource } from './row-source.js';

export type TableUpdate =
  /** Write or accumulate into a [V, D] gradient for a dense optimiser. */
  | { kind: 'dense'; grad: GradTarget }
  /** Add to an exact sum, the square of the global norm; nothing is updated. */
  | { kind: 'square-sum'; to: Tensor<'i64'> }
  /** Adam on touched rows only, bias-corrected by the global step. */
  | { kind: 'lazy-adam'; m: Tensor<'f32'>; v: Tensor<'f32'>; hyper: AdamHyper }
  /** One accumulator per row: state[V] += mean g^2; row -= lr g / (sqrt(state) + eps). */
  | { kind: 'row-adagrad'; state: Tensor<'f32'>; lr: number; eps: number; weightDecay: number };

export interface EmbeddingUpdateOptions {
  /** A scalar that multiplies the gradient: clipping. Not for 'dense' and 'square-sum'. */
  gradScale?: Tensor<'f32'> | undefined;
  /** Random numbers for stochastic rounding of 16-bit rows; default: round to nearest. */
  rounding?: RandomKey | undefined;
  stream?: StreamName | undefined;
}

export interface Contributed {
  /** What the contributions' ids index: the table, or rows staged from it. */
  source: RowSource;
  contributions: readonly Contribution[];
}

/** Sums contributions and applies the sums. `table` is [V, D]. */
export function embeddingUpdate(
  device: Device,
  table: Tensor<RowDtype>,
  { source, contributions }: Contributed,
  update: TableUpdate,
  options: EmbeddingUpdateOptions = {},
): void {
  const staged = source.ids && source;
  const call = device.call('embedding_update').tensor(table).tensor(staged?.value).tensor(staged?.ids);
  writeRounding(writeUpdate(call, update), options.rounding).tensor(options.gradScale);
  writeContributions(call, contributions).submit(options.stream);
}

export interface GradientRows {
  /** The table row of each gradient row; default: all rows in order. */
  ids?: Tensor<'i32'>; // [U]
  rows: Tensor<'f32'>; // [U, D]
}

/** Applies gradient rows that are already summed. */
export function embeddingApply(
  device: Device,
  table: Tensor<RowDtype>,
  { ids, rows }: GradientRows,
  update: TableUpdate,
  options: EmbeddingUpdateOptions = {},
): void {
  const call = device.call('embedding_apply').tensor(table).tensor(ids).tensor(rows);
  writeRounding(writeUpdate(call, update), options.rounding).tensor(options.gradScale).submit(options.stream);
}

function writeUpdate(call: Call, update: TableUpdate): Call {
  switch (update.kind) {
    case 'dense':
      return call.number(0).grad(update.grad);
    case 'square-sum':
      return call.number(1).tensor(update.to);
    case 'lazy-adam':
      return call.number(2).tensor(update.m).tensor(update.v).adam(update.hyper);
    default:
      return call.number(3).tensor(update.state).number(update.lr).number(update.eps).number(update.weightDecay);
  }
}

function writeRounding(call: Call, key: RandomKey | undefined): Call {
  return call.flag(key !== undefined).random(key ?? { seed: 0, step: 0, purpose: 0 });
}
