// For every query, the number of non-excluded items that beat a given score: with a higher score, or with an equal one and
// an index below a given position. With an item's own score and index this is its rank minus one; counts over disjoint
// parts of a table add up to that of the whole.
//
// Q queries, D width, V items.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { Excluded } from './top-k.js';

export interface CountAheadOptions {
  /** The scores to beat. */
  bars: Tensor<'f32'>; // [Q]
  /** 0 to V: items before it win a tie. */
  places: Tensor<'i32'>; // [Q]
  excluded?: Excluded;
}

/** [1, Q]; the caller owns it. */
export function countAhead(
  device: Device,
  queries: Tensor<'f32'>,
  table: Tensor<RowDtype>,
  { bars, places, excluded }: CountAheadOptions,
): Tensor<'i32'> {
  expectShape('count_ahead', 'table', table, table.rows, queries.cols);
  expectSize('count_ahead', 'bars', bars, queries.rows);
  expectSize('count_ahead', 'places', places, queries.rows);
  if (excluded) expectSize('count_ahead', 'excluded offsets', excluded.offsets, queries.rows + 1);
  const counts = device.tensor([1, queries.rows], 'i32');
  device
    .call('count_ahead')
    .tensor(queries)
    .tensor(table)
    .tensor(bars)
    .tensor(places)
    .tensor(excluded?.offsets)
    .tensor(excluded?.ids)
    .tensor(counts)
    .submit();
  return counts;
}
