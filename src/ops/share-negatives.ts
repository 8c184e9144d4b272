// Groups tokens that share their draws: the trained tokens, shuffled by the key, in groups of k.
//
// T tokens, R draws per token, G = ceil(T / k) groups.

import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { expectShape } from './shape-rule.js';

export interface SharedDraws {
  /** Tokens of each group, padded with -1. */
  members: Tensor<'i32'>; // [G, k]
  /** Draws of member 0, then of member 1, ... */
  negatives: Tensor<'i32'>; // [G, k R]
}

/** The caller owns the result. */
export function shareNegatives(
  device: Device,
  key: RandomKey,
  { positives, drawn, factor }: { positives: Tensor<'i32'>; drawn: Tensor<'i32'>; factor: number },
  stream?: StreamName,
): SharedDraws {
  expectShape('share_negatives', 'drawn', drawn, positives.size, drawn.cols);
  const groups = Math.ceil(positives.size / factor);
  const members = device.tensor([groups, factor], 'i32');
  const negatives = device.tensor([groups, factor * drawn.cols], 'i32');
  const call = device.call('share_negatives').random(key).tensor(positives).tensor(drawn);
  call.tensor(members).tensor(negatives).submit(stream);
  return { members, negatives };
}
