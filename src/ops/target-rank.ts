// The exact rank, from 1, of one target for every query among all items that are not excluded; items that tie with it
// rank before it when their id is lower. An excluded target ranks V + 1. With a bonus the target competes with its score
// plus the bonus.
//
// Q queries, D width, V items.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { Excluded } from './top-k.js';

export interface TargetRankOptions {
  targets: Tensor<'i32'>; // [Q]
  excluded?: Excluded;
  /** Added to the score of each target. */
  bonus?: Tensor<'f32'>; // [Q]
}

/** [1, Q]; the caller owns it. */
export function targetRank(
  device: Device,
  queries: Tensor<'f32'>,
  table: Tensor<RowDtype>,
  { targets, excluded, bonus }: TargetRankOptions,
): Tensor<'i32'> {
  expectShape('target_rank', 'table', table, table.rows, queries.cols);
  expectSize('target_rank', 'targets', targets, queries.rows);
  if (excluded) expectSize('target_rank', 'excluded offsets', excluded.offsets, queries.rows + 1);
  if (bonus) expectSize('target_rank', 'bonus', bonus, queries.rows);
  const ranks = device.tensor([1, queries.rows], 'i32');
  device
    .call('target_rank')
    .tensor(queries)
    .tensor(table)
    .tensor(targets)
    .tensor(excluded?.offsets)
    .tensor(excluded?.ids)
    .tensor(bonus)
    .tensor(ranks)
    .submit();
  return ranks;
}
