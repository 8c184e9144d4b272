// Counts the effective negatives of a batch: draws, masked draws, and repeated draws of the same token.
//
// T tokens, G groups of k tokens, N draws of a token or group.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { type MaskedEvents, writeMask } from './mask-negatives.js';

export interface CountedDraws {
  positives: Tensor<'i32'>; // [T]
  negatives: Tensor<'i32'>; // [T, N] or [G, N]
  /** Groups, if draws are shared. */
  members?: Tensor<'i32'> | undefined; // [G, k]
  history?: MaskedEvents | undefined;
}

/** Numbers of draws, masked and repeated ones, over all trained tokens. The caller owns the result. */
export function countNegatives(
  device: Device,
  { positives, negatives, members, history }: CountedDraws,
): Tensor<'i64'> {
  const counts = device.tensor([1, 3], 'i64');
  const call = device.call('count_negatives').tensor(positives).number(negatives.rows).tensor(negatives);
  call.flag(members !== undefined);
  if (members) call.tensor(members);
  writeMask(call, history).tensor(counts).submit();
  return counts;
}
