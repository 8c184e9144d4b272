// The two sides of a ranking: the state after each sequence's last event, and the item rows to compare it with.

import type { BatchTensors } from '../nn/batch-tensors.js';
import type { Model } from '../nn/model.js';
import { embeddingGather } from '../ops/embedding-gather.js';
import { l2Norm } from '../ops/l2-norm.js';
import { Table } from '../ops/table.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';

/** [B, D] states that predict the event after each sequence. `offsets` are the batch's; no sequence may be empty. */
export function lastStates(tape: Tape, model: Model, batch: BatchTensors, offsets: Int32Array): Tensor<'f32'> {
  const states = tape.scope(() => model.encode(tape, batch)); // [T, D]
  using ids = tape.device.from(offsets.subarray(1).map(end => end - 1));
  return embeddingGather(tape, [{ table: new Table(tape.device, 'states', states), ids }]); // [B, D]
}

/** [V, D] rows by whose dot product with a state items are ranked. */
export function rankingTable(tape: Tape, model: Model, normalizeItem: boolean): Tensor<'f32'> {
  return normalizeItem ? l2Norm(tape, model.itemRows) : model.itemRows;
}
