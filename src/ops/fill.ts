// Initial values. Element i is a pure function of the key and i.

import type { RandomKey } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { type RowShard, WHOLE } from '../util/row-shard.js';
import type { RowDtype } from './row-source.js';

export function fillConstant(device: Device, to: Tensor<'f32'>, value: number): void {
  device.call('fill_constant').number(value).tensor(to).submit();
}

/** Uniform in [low, high). */
export function fillUniform(
  device: Device,
  to: Tensor<'f32'>,
  key: RandomKey,
  { low, high }: { low: number; high: number },
): void {
  device.call('fill_uniform').random(key).number(low).number(high).tensor(to).submit();
}

export function fillNormal(
  device: Device,
  to: Tensor<'f32'>,
  key: RandomKey,
  { mean = 0, std }: { mean?: number; std: number },
): void {
  device.call('fill_normal').random(key).number(mean).number(std).tensor(to).submit();
}

export interface TruncNormalOptions {
  mean?: number;
  std: number;
  low: number;
  high: number;
  /** `to` is a subset of rows of a larger matrix and gets the values that they have there. */
  shard?: RowShard;
}

/** A normal distribution truncated to [low, high] (absolute bounds) by redrawing. */
export function fillTruncNormal(
  device: Device,
  to: Tensor<RowDtype>,
  key: RandomKey,
  { mean = 0, std, low, high, shard = WHOLE }: TruncNormalOptions,
): void {
  const call = device.call('fill_trunc_normal').random(key).number(mean).number(std).number(low).number(high);
  call.number(shard.index).number(shard.count).tensor(to).submit();
}
