// Rows that were requested before an update changed them: finds and counts them, and writes their new values.
//
// Requests come in parts, one per sender. n senders, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';

export interface Requests {
  readonly ids: Tensor<'i32'>;
  /** Request counts per sender. */
  readonly counts: Tensor<'i64'>; // [n]
}

export interface ChangedRows {
  /** Positions in the sender's part. */
  readonly at: Tensor<'i32'>;
  /** The row's id, or its index in the list. */
  readonly from: Tensor<'i32'>;
  /** Counts per sender. */
  readonly counts: Tensor<'i64'>; // [n]
}

/** The requests whose rows are in an ascending list. The caller owns the tensors. */
export function changedRows(
  device: Device,
  requests: Requests,
  { list, from }: { list: Tensor<'i32'>; from: 'id' | 'list' },
  stream?: StreamName,
): ChangedRows {
  const changed = {
    at: device.tensor(requests.ids.shape, 'i32'),
    from: device.tensor(requests.ids.shape, 'i32'),
    counts: device.tensor(requests.counts.shape, 'i64'),
  };
  const call = device.call('changed_rows').tensor(requests.ids).tensor(requests.counts);
  call.tensor(list).flag(from === 'list');
  call.tensor(changed.at).tensor(changed.from).tensor(changed.counts).submit(stream);
  return changed;
}

/** to[0] += requested rows, to[1] += those of them that occur in any of the lists. */
export function countChanged(
  device: Device,
  requests: Requests,
  lists: readonly Tensor<'i32'>[],
  to: Tensor<'i64'>,
  stream?: StreamName,
): void {
  const call = device.call('count_changed').tensor(requests.ids).tensor(requests.counts).number(lists.length);
  for (const list of lists) call.tensor(list);
  call.tensor(to).submit(stream);
}

export interface RowPlaces {
  readonly at: Tensor<'i32'>;
  /** Rows of each part. */
  readonly counts: Tensor<'i64'>; // [n]
  /** Lengths of the destination parts. */
  readonly parts: Tensor<'i64'>; // [n]
  /** Maps positions of all parts to rows; default: identity. */
  readonly order?: Tensor<'i32'> | undefined;
}

/** Overwrites rows of `to`. */
export function putRows(
  device: Device,
  rows: Tensor<RowDtype>,
  { at, counts, parts, order }: RowPlaces,
  to: Tensor<RowDtype>,
  stream?: StreamName,
): void {
  device.call('put_rows').tensor(rows).tensor(at).tensor(counts).tensor(parts).tensor(order).tensor(to).submit(stream);
}
