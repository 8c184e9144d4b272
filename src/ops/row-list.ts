// A table's gradient as a list: the touched rows by ascending id. How many there are is known on the device alone: a list
// has room for as many as there may be, and its ids end in -1.
//
// U rows that the list has room for, V rows of the table, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export interface RowList {
  /** Ascending, each once; -1 beyond the last. */
  readonly ids: Tensor<'i32'>; // [U]
  /** Unspecified beyond the last id. */
  readonly rows: Tensor<'f32'>; // [U, D]
}

/** A list with room for `entries` different rows, or for all rows of the table. The caller owns it. */
export function emptyRowList(device: Device, entries: number, table: { vocabulary: number; width: number }): RowList {
  const room = Math.min(entries, table.vocabulary);
  return { ids: device.tensor([1, room], 'i32'), rows: device.tensor([room, table.width]) };
}

export function disposeRowList({ ids, rows }: RowList): void {
  ids.dispose();
  rows.dispose();
}

/** left + right by id, as a new list; a row that only one of them has is copied. */
export function sparseAdd(
  device: Device,
  { left, right, vocabulary }: { left: RowList; right: RowList; vocabulary: number },
  stream?: StreamName,
): RowList {
  const to = emptyRowList(device, left.ids.size + right.ids.size, { vocabulary, width: left.rows.cols });
  device
    .call('sparse_add')
    .tensor(left.ids)
    .tensor(left.rows)
    .tensor(right.ids)
    .tensor(right.rows)
    .tensor(to.ids)
    .tensor(to.rows)
    .submit(stream);
  return to;
}
