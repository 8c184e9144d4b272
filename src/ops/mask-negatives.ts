// Replaces draws that occur in the token's own sequence by -1: they are not valid negatives for this user.
//
// T tokens, B sequences, R draws per token.

import type { Call, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { expectShape } from './shape-rule.js';

/** The events of a batch. */
export interface MaskedEvents {
  items: Tensor<'i32'>; // [T]
  targets: Tensor<'i32'>; // [T]
  offsets: Tensor<'i32'>; // [B + 1]
}

export function writeMask(call: Call, events: MaskedEvents | undefined): Call {
  return call.tensor(events?.items).tensor(events?.targets).tensor(events?.offsets);
}

/** Changes `ids` [T, R] in place. */
export function maskNegatives(device: Device, ids: Tensor<'i32'>, events: MaskedEvents, stream?: StreamName): void {
  expectShape('mask_negatives', 'ids', ids, events.targets.size, ids.cols);
  writeMask(device.call('mask_negatives').tensor(events.targets), events).tensor(ids).submit(stream);
}
