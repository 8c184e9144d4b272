// Initial values of a parameter, from counter-based random numbers.

import type { RandomKey } from '../native/call.js';
import type { Device } from '../native/device.js';
import { fillConstant, fillNormal, fillTruncNormal, fillUniform } from '../ops/fill.js';
import type { RowDtype } from '../ops/row-source.js';
import { isF32, type Tensor } from '../tensor/tensor.js';
import { type RowShard, WHOLE } from '../util/row-shard.js';
import type { Init } from './parameter-spec.js';

/** Enqueues filling `to`: a whole parameter, or some rows of a truncated normal one. */
export function initialize(
  device: Device,
  to: Tensor<RowDtype>,
  init: Init,
  { shard = WHOLE, ...key }: RandomKey & { shard?: RowShard },
): void {
  if (init.kind === 'trunc-normal') {
    fillTruncNormal(device, to, key, { std: init.std, low: -2 * init.std, high: 2 * init.std, shard });
    return;
  }
  if (!isF32(to) || shard.count > 1)
    throw new Error(`tables start from a truncated normal distribution, not from ${init.kind}`);
  switch (init.kind) {
    case 'values':
      return device.upload(to, Float32Array.from(init.values));
    case 'constant':
      return fillConstant(device, to, init.value);
    case 'uniform':
      return fillUniform(device, to, key, { low: -init.bound, high: init.bound });
    case 'normal':
      return fillNormal(device, to, key, { std: init.std });
  }
}
