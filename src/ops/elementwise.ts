// Elementwise passes that are not fused into other ops.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

/** y += a x. */
export function add(
  device: Device,
  a: number,
  { x, y }: { x: Tensor<'f32'>; y: Tensor<'f32'> },
  stream?: StreamName,
): void {
  device.call('add').number(a).tensor(x).tensor(y).submit(stream);
}

/** y += (x - y) w: with w = 1 - decay an exponential moving average of x. */
export function lerp(
  device: Device,
  w: number,
  { x, y }: { x: Tensor<'f32'>; y: Tensor<'f32'> },
  stream?: StreamName,
): void {
  device.call('lerp').number(w).tensor(x).tensor(y).submit(stream);
}

/** Converts to FP16, rounding to nearest even; values beyond 65504 become infinity. */
export function castToF16(device: Device, x: Tensor<'f32'>, y: Tensor<'f16'>, stream?: StreamName): void {
  device.call('cast_to_f16').tensor(x).tensor(y).submit(stream);
}

export function castToF32(device: Device, x: Tensor<'f16'>, y: Tensor<'f32'>, stream?: StreamName): void {
  device.call('cast_to_f32').tensor(x).tensor(y).submit(stream);
}
