// Global gradient norm and clipping: squareSum of every gradient into one scalar, then clipScale, whose result the
// optimisers take as gradScale. No pass rewrites the gradients.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

/** to = sum of x^2, or to += it. */
export function squareSum(
  device: Device,
  x: Tensor<'f32'>,
  { to, accumulate }: { to: Tensor<'f32'>; accumulate: boolean },
  stream?: StreamName,
): void {
  device.call('square_sum').tensor(x).tensor(to).flag(accumulate).submit(stream);
}

/** scale = min(1, maxNorm / sqrt(squareSum)). A norm that is not finite fails the stream, so nothing is updated by it. */
export function clipScale(
  device: Device,
  { squareSum, maxNorm, scale }: { squareSum: Tensor<'f32'>; maxNorm: number; scale: Tensor<'f32'> },
  stream?: StreamName,
): void {
  device.call('clip_scale').tensor(squareSum).number(maxNorm).tensor(scale).submit(stream);
}
