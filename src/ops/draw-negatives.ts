// Draws negatives with replacement from counter-based random numbers: draw (t, r) is a pure function of the key and its
// position. Draws may equal the positive; the losses mask those.
//
// T tokens, R negatives per token, P rows of a pool, V items.

import type { Call, RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { AliasTable } from './alias-table.js';

export type Sampler =
  /** Ids first .. first + count - 1, uniformly. */
  | { kind: 'uniform'; first?: number; count: number }
  /** Each id by its weight, see aliasTable. */
  | { kind: 'popularity'; table: AliasTable }
  /** The positives of the batch's trained tokens. */
  | { kind: 'in-batch'; positives: Tensor<'i32'> };

/** Overwrites ids[T, R]. */
export function drawNegatives(
  device: Device,
  ids: Tensor<'i32'>,
  key: RandomKey,
  sampler: Sampler,
  stream?: StreamName,
): void {
  writeSampler(device.call('draw_negatives').random(key), sampler).tensor(ids).submit(stream);
}

/** Overwrites ids[P] with distinct ids, ascending, padded with -1. */
export function drawPool(
  device: Device,
  ids: Tensor<'i32'>,
  key: RandomKey,
  sampler: Sampler,
  stream?: StreamName,
): void {
  writeSampler(device.call('draw_pool').random(key), sampler).tensor(ids).submit(stream);
}

function writeSampler(call: Call, sampler: Sampler): Call {
  switch (sampler.kind) {
    case 'uniform':
      return call
        .number(0)
        .number(sampler.first ?? 0)
        .number(sampler.count);
    case 'popularity':
      return call.number(1).tensor(sampler.table.threshold).tensor(sampler.table.alias);
    default:
      return call.number(2).tensor(sampler.positives);
  }
}
