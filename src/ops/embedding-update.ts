// What becomes of a table's contributions: summed by row, in order, and handed to an optimiser (or to a dense gradient)
// without a gradient row ever being stored.
//
// V rows, D width.

import type { Call, GradTarget, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { TurboError } from '../tensor/turbo-error.js';
import type { AdamHyper } from './adamw.js';
import type { Table } from './table.js';

/** Contributions that one update can sum. */
export const MAX_CONTRIBUTIONS = 8;

export type TableUpdate =
  /** Written, or added, to a [V, D] gradient for a dense optimiser. */
  | { kind: 'dense'; grad: GradTarget }
  /** Added to the square of the global norm, a scalar; nothing is updated. */
  | { kind: 'square-sum'; to: Tensor<'f32'> }
  /** Adam on touched rows only, bias-corrected by the global step. */
  | { kind: 'lazy-adam'; m: Tensor<'f32'>; v: Tensor<'f32'>; hyper: AdamHyper }
  /** One accumulator a row: state[V] += mean g^2; row -= lr g / (sqrt(state) + eps). */
  | { kind: 'row-adagrad'; state: Tensor<'f32'>; lr: number; eps: number; weightDecay: number };

export interface EmbeddingUpdateOptions {
  /** A scalar that multiplies the gradient: clipping. Not for 'dense' and 'square-sum'. */
  gradScale?: Tensor<'f32'> | undefined;
  stream?: StreamName;
}

/** Applies the table's contributions. They stay until `table.clearGrad()`. */
export function embeddingUpdate(
  device: Device,
  table: Table,
  update: TableUpdate,
  options: EmbeddingUpdateOptions = {},
): void {
  const { contributions } = table;
  if (contributions.length > MAX_CONTRIBUTIONS) {
    throw new TurboError({
      kind: 'argument',
      op: 'embedding_update',
      input: table.name,
      expected: `at most ${MAX_CONTRIBUTIONS} contributions (update before the next one is recorded)`,
      got: String(contributions.length),
    });
  }
  const call = device.call('embedding_update').tensor(table.value);
  writeUpdate(call, update).tensor(options.gradScale).number(contributions.length);
  for (const { source, ids, coef, scale, normalizedEps } of contributions) {
    call
      .tensor(source)
      .tensor(ids)
      .tensor(coef)
      .number(scale)
      .number(normalizedEps ?? 0);
  }
  call.submit(options.stream);
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
