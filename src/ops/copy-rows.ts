// Copies ranges of rows between tensors of any data type, and large tensors to and from the host in pieces, as f32, which
// represents 16-bit rows exactly.

import type { Device } from '../native/device.js';
import { isF32, type Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';

/** Floats of a piece: 64 MB. */
const PIECE = 2 ** 24;

export interface RowRange {
  rows: Tensor<RowDtype>;
  /** First row to copy. */
  from: number;
  to: Tensor<RowDtype>;
  /** First destination row. */
  at: number;
  count: number;
}

/** Rounds to nearest if `to` has fewer bits. */
export function copyRows(device: Device, { rows, from, to, at, count }: RowRange): void {
  device.call('copy_rows').tensor(rows).number(from).tensor(to).number(at).number(count).submit();
}

/** All rows as f32, in order, in pieces. */
export async function* readRows(device: Device, rows: Tensor<RowDtype>): AsyncGenerator<Float32Array> {
  if (isF32(rows) && rows.size <= PIECE) {
    yield device.read(rows);
    return;
  }
  for (const { from, count } of pieces(rows)) {
    using piece = device.tensor([count, rows.cols]);
    copyRows(device, { rows, from, to: piece, at: 0, count });
    yield await device.read(piece);
  }
}

/** All rows at once. */
export async function readAllRows(device: Device, rows: Tensor<RowDtype>): Promise<Float32Array> {
  if (isF32(rows)) return await device.read(rows);
  using all = device.tensor(rows.shape);
  copyRows(device, { rows, from: 0, to: all, at: 0, count: rows.rows });
  return await device.read(all);
}

/** Overwrites all rows; `fill` writes elements from `start` on into an array. */
export function writeRows(
  device: Device,
  rows: Tensor<RowDtype>,
  fill: (start: number, into: Float32Array<ArrayBuffer>) => void,
): void {
  for (const { from, count } of pieces(rows)) {
    const values = new Float32Array(count * rows.cols);
    fill(from * rows.cols, values);
    if (isF32(rows) && count === rows.rows) {
      device.upload(rows, values);
      return;
    }
    using piece = device.from(values, [count, rows.cols]);
    copyRows(device, { rows: piece, from: 0, to: rows, at: from, count });
  }
}

function* pieces({ rows, cols }: Tensor): Generator<{ from: number; count: number }> {
  const most = Math.max(1, Math.floor(PIECE / Math.max(1, cols)));
  for (let from = 0; from < rows; from += most) yield { from, count: Math.min(most, rows - from) };
}
