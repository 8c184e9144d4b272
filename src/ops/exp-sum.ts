// For every query the sum over all items of e^(score - bar), in fixed point: terms are rounded to multiples of 2^-bits and
// added as integers, so sums over disjoint parts of a table add up exactly to that of the whole.
//
// Q queries, D width, V items.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';
import { expectShape, expectSize } from './shape-rule.js';

export interface ExpSumOptions {
  /** At least the maximum score. */
  bars: Tensor<'f32'>; // [Q]
  /** V must be below 2^(62 - bits). */
  bits: number;
}

/** [1, Q] in units of 2^-bits; the caller owns it. */
export function expSum(
  device: Device,
  queries: Tensor<'f32'>,
  table: Tensor<RowDtype>,
  { bars, bits }: ExpSumOptions,
): Tensor<'i64'> {
  expectShape('exp_sum', 'table', table, table.rows, queries.cols);
  expectSize('exp_sum', 'bars', bars, queries.rows);
  const sums = device.tensor([1, queries.rows], 'i64');
  device.call('exp_sum').tensor(queries).tensor(table).tensor(bars).number(bits).tensor(sums).submit();
  return sums;
}
