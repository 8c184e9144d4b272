// scale = min(1, maxNorm / sqrt(squareSum)), which the optimisers take as gradScale: no pass rewrites the gradients.
// A norm that is not finite fails the stream, so nothing is updated by it.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export interface ClipScale {
  /** [parts, EXACT_WORDS], added up. */
  squareSum: Tensor<'i64'>;
  /** A scalar. */
  scale: Tensor<'f32'>;
  maxNorm: number;
}

export function clipScale(device: Device, { squareSum, scale, maxNorm }: ClipScale, stream?: StreamName): void {
  device.call('clip_scale').tensor(squareSum).number(maxNorm).tensor(scale).submit(stream);
}
