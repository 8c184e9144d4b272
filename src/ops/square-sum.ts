// to = sum of x^2, or to += it, exact across pieces: with clipScale, the global norm of the gradients. Pieces that begin at
// multiples of SQUARE_TILE may be summed anywhere and combined in any order.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

/** Words of an exact sum (native/kernels/src/exact_sum.rs). */
export const EXACT_WORDS = 21;
/** Elements that are summed in double precision before the exact addition. */
export const SQUARE_TILE = 16 * 1024;

export interface SquareSumTarget {
  /** [1, EXACT_WORDS] */
  to: Tensor<'i64'>;
  accumulate: boolean;
}

export function squareSum(
  device: Device,
  x: Tensor<'f32'>,
  { to, accumulate }: SquareSumTarget,
  stream?: StreamName,
): void {
  device.call('square_sum').tensor(x).tensor(to).flag(accumulate).submit(stream);
}
