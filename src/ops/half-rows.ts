// FP16 rows as sent by their owners, each scaled by a power of two with the factor that undoes it. Rounding is idempotent, so
// it does not matter which rank rounds.
//
// U rows, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';

export interface HalfRows {
  readonly rows: Tensor<'f16'>; // [U, D]
  readonly factors: Tensor<'f32'>; // [U, 1]
}

/** A buffer with capacity for `rows` rows. The caller owns the tensors. */
export function emptyHalfRows(device: Device, count: number, width: number): HalfRows {
  return { rows: device.tensor([count, width], 'f16'), factors: device.tensor([count, 1]) };
}

export interface RowSpread {
  rows: Tensor<RowDtype>; // [U, D]
  factors?: Tensor<'f32'>; // [U, 1]
  /** Ascending; they end in -1. */
  places: Tensor<'i32'>; // [U]
  to: Tensor<'f32'>;
}

/** to[places[k]] = factors[k] * rows[k]; other rows are left as they are. */
export function spreadRows(device: Device, { rows, factors, places, to }: RowSpread, stream?: StreamName): void {
  device.call('spread_rows').tensor(rows).tensor(factors).tensor(places).tensor(to).submit(stream);
}
