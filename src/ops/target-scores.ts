// The score of one item per query, with the same bits as in `top_k` and `count_ahead`; 0 where the item is -1.
//
// Q queries, D width, V items.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';
import { expectShape, expectSize } from './shape-rule.js';

/** [1, Q]; the caller owns it. */
export function targetScores(
  device: Device,
  queries: Tensor<'f32'>,
  table: Tensor<RowDtype>,
  targets: Tensor<'i32'>,
): Tensor<'f32'> {
  expectShape('target_scores', 'table', table, table.rows, queries.cols);
  expectSize('target_scores', 'targets', targets, queries.rows);
  const scores = device.tensor([1, queries.rows]);
  device.call('target_scores').tensor(queries).tensor(table).tensor(targets).tensor(scores).submit();
  return scores;
}
