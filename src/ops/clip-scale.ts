// scale = min(1, maxNorm / sqrt(squareSum)), which optimisers apply as gradScale, so no pass rewrites the gradients. A
// non-finite norm fails the stream, so nothing is updated.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export interface ClipScale {
  /** [parts, EXACT_WORDS], summed. */
  squareSum: Tensor<'i64'>;
  /** A scalar. */
  scale: Tensor<'f32'>;
  maxNorm: number;
}

export function clipScale(device: Device, { squareSum, scale, maxNorm }: ClipScale, stream?: StreamName): void {
  device.call('clip_scale').tensor(squareSum).number(maxNorm).tensor(scale).submit(stream);
}
