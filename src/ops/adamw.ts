// AdamW on a dense parameter: decoupled weight decay, bias-corrected moments; one pass over memory.

import type { AdamHyper, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

export type { AdamHyper } from '../native/call.js';

export interface AdamWState {
  /** Parameter, gradient and the two moments, all of one size. Moments start at zero. */
  p: Tensor<'f32'>;
  g: Tensor<'f32'>;
  m: Tensor<'f32'>;
  v: Tensor<'f32'>;
}

export interface AdamWOptions {
  /** A scalar that multiplies the gradient: clipping. */
  gradScale?: Tensor<'f32'>;
  stream?: StreamName;
}

export function adamw(device: Device, state: AdamWState, hyper: AdamHyper, options: AdamWOptions = {}): void {
  device
    .call('adamw')
    .tensor(state.p)
    .tensor(state.g)
    .tensor(state.m)
    .tensor(state.v)
    .adam(hyper)
    .tensor(options.gradScale)
    .submit(options.stream);
}
