// Exact top-k items of every query by dot product; ties go to the lower id. The query-by-item matrix is never stored.
//
// Q queries, D width, V items.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';
import { expectShape, expectSize } from './shape-rule.js';

/** Items to leave out: for query q ids[offsets[q] .. offsets[q + 1] - 1], in any order. */
export interface Excluded {
  offsets: Tensor<'i32'>; // [Q + 1]
  ids: Tensor<'i32'>;
}

export interface TopK {
  /** -1 where fewer than k items are left. */
  ids: Tensor<'i32'>; // [Q, k]
  /** -inf where the id is -1. */
  scores: Tensor<'f32'>; // [Q, k]
}

export interface TopKOptions {
  k: number;
  excluded?: Excluded;
}

/** The caller owns the result. */
export function topK(
  device: Device,
  queries: Tensor<'f32'>,
  table: Tensor<RowDtype>,
  { k, excluded }: TopKOptions,
): TopK {
  expectShape('top_k', 'table', table, table.rows, queries.cols);
  if (excluded) expectSize('top_k', 'excluded offsets', excluded.offsets, queries.rows + 1);
  const found = { ids: device.tensor([queries.rows, k], 'i32'), scores: device.tensor([queries.rows, k]) };
  device
    .call('top_k')
    .tensor(queries)
    .tensor(table)
    .tensor(excluded?.offsets)
    .tensor(excluded?.ids)
    .tensor(found.ids)
    .tensor(found.scores)
    .submit();
  return found;
}
