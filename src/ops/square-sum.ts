// to = sum of x^2, or to += it, in double and in order: with clipScale, the global norm of the gradients.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export interface SquareSumTarget {
  /** A scalar. */
  to: Tensor<'f32'>;
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
