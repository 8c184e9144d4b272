// A table's gradient as a list of touched rows by ascending id. Their number is known only on the device: a list has the
// capacity for the maximum, and its ids end in -1.
//
// U capacity of the list in rows, V rows of the table, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export interface RowList {
  /** Ascending, distinct, padded with -1. */
  readonly ids: Tensor<'i32'>; // [U]
  /** Unspecified beyond the last id. */
  readonly rows: Tensor<'f32'>; // [U, D]
}

/** A list with capacity for `entries` distinct rows, at most all rows of the table. The caller owns it. */
export function emptyRowList(device: Device, entries: number, table: { vocabulary: number; width: number }): RowList {
  const room = Math.min(entries, table.vocabulary);
  return { ids: device.tensor([1, room], 'i32'), rows: device.tensor([room, table.width]) };
}

export function disposeRowList({ ids, rows }: RowList): void {
  ids.dispose();
  rows.dispose();
}

export interface ListsToAdd {
  left: RowList;
  right: RowList;
  vocabulary: number;
  /** Ids of rows to leave out: ascending, padded with -1. */
  without?: Tensor<'i32'> | undefined;
}

/** left + right by id, as a new list; rows in only one of them are copied. */
export function sparseAdd(
  device: Device,
  { left, right, vocabulary, without }: ListsToAdd,
  stream?: StreamName,
): RowList {
  const to = emptyRowList(device, left.ids.size + right.ids.size, { vocabulary, width: left.rows.cols });
  device
    .call('sparse_add')
    .tensor(left.ids)
    .tensor(left.rows)
    .tensor(right.ids)
    .tensor(right.rows)
    .tensor(without)
    .tensor(to.ids)
    .tensor(to.rows)
    .submit(stream);
  return to;
}
