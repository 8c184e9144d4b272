// Softmax over the whole table, for catalogues small enough to afford it. The table gets a dense gradient.
//
// T tokens, D width, V items.

import type { Tensor } from '../tensor/tensor.js';
import { type LogitOptions, writeLogit } from './sampled-loss.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { Table } from './table.js';
import type { Tape } from './tape.js';

export interface FullSoftmaxOptions extends LogitOptions {
  /** -1: this token is not trained. */
  positives: Tensor<'i32'>; // [T]
  /** Label smoothing: the share of the target distribution that all items have in equal parts; default 0. */
  smoothing?: number | undefined;
}

/** The mean loss, a scalar that lives as long as the tape. Its gradients are computed at once; `tape.backward` propagates them. */
export function fullSoftmax(tape: Tape, u: Tensor<'f32'>, table: Table, options: FullSoftmaxOptions): Tensor<'f32'> {
  const { device } = tape;
  expectSize('full_softmax', 'positives', options.positives, u.rows);
  expectShape('full_softmax', 'table', table.value, table.value.rows, u.cols);
  const loss = tape.result([1, 1]);
  const du = tape.someTarget(u);
  const scratch = tape.training ? undefined : device.tensor(table.value.shape);
  const dtable = scratch ? { to: scratch, accumulate: false } : table.gradTarget();
  const call = device.call('full_softmax').tensor(u).tensor(table.value).tensor(options.positives);
  writeLogit(call, options)
    .number(options.smoothing ?? 0)
    .tensor(loss)
    .grad(du)
    .grad(dtable)
    .submit();
  scratch?.dispose();
  return loss;
}
