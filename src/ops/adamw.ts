// AdamW on a dense parameter: decoupled weight decay, bias-corrected moments; one pass over memory.

import type { AdamHyper, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export type { AdamHyper } from '../native/call.js';

export interface AdamW {
  /** Parameter, gradient and the two moments, all of the same size. Moments start at zero. */
  p: Tensor<'f32'>;
  g: Tensor<'f32'>;
  m: Tensor<'f32'>;
  v: Tensor<'f32'>;
  hyper: AdamHyper;
  /** A scalar that multiplies the gradient: clipping. */
  gradScale?: Tensor<'f32'> | undefined;
}

export function adamw(device: Device, { p, g, m, v, hyper, gradScale }: AdamW, stream?: StreamName): void {
  device.call('adamw').tensor(p).tensor(g).tensor(m).tensor(v).adam(hyper).tensor(gradScale).submit(stream);
}
