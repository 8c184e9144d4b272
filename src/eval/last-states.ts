// The state after each sequence's last event, by which items are ranked.

import type { BatchTensors } from '../nn/batch-tensors.js';
import type { Model } from '../nn/model.js';
import { gatherRows } from '../ops/gather-rows.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';

/** [B, D] states that predict the next event of each sequence. `offsets` of the batch; no sequence may be empty. */
export function lastStates(tape: Tape, model: Model, batch: BatchTensors, offsets: Int32Array): Tensor<'f32'> {
  const states = tape.scope(() => model.encode(tape, batch)); // [T, D]
  using ids = tape.device.from(offsets.subarray(1).map(end => end - 1));
  return gatherRows(tape, states, ids); // [B, D]
}
