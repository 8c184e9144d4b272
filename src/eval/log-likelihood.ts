// How probable a model finds the held-out events: the mean, over them, of the logarithm of the softmax that the loss is
// made of, over the whole catalogue. Its negative is the held-out loss of full softmax. Nothing is left out.
//
// T tokens of a batch, V items, D model width.

import { BatchPlan } from '../data/batch/batch-plan.js';
import { BatchBuffer, type SourceBatch } from '../data/batch/batch-buffer.js';
import { heldOutWindows, partBounds, sampleUsers } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { Model } from '../nn/model.js';
import { fullSoftmax } from '../ops/full-softmax.js';
import { Tape } from '../ops/tape.js';
import { BATCH_TOKENS, EVALUATED_USERS } from './cases.js';

export interface LikelihoodInput {
  model: Model;
  source: SequenceSource;
  part: 'validation' | 'test';
  /** Evaluate this many users only, always the same ones. Default: all. */
  users?: number;
}

/** Of a user with more held-out events than the model can read, the newest count. */
export async function logLikelihood({ model, source, part, users }: LikelihoodInput): Promise<number> {
  const { device } = model;
  const { maxLength } = model.definition;
  const windows = sampleUsers(heldOutWindows(source, { part, maxLength }), users, EVALUATED_USERS);
  const plan = new BatchPlan({ windows, size: { tokens: Math.max(BATCH_TOKENS, maxLength) }, seed: 0, shuffle: false });
  const buffer = new BatchBuffer(source, windows);
  const [starts] = partBounds(source, part);
  let [sum, events] = [0, 0];
  for (let position = 0; position < plan.batches(0); position++) {
    const batch = buffer.fill(plan.batch({ epoch: 0, position }));
    const heldOut = maskSeen(batch, starts);
    using tape = new Tape(device, { training: false });
    using tensors = model.upload(batch);
    const states = tape.scope(() => model.encode(tape, tensors)); // [T, D]
    const options = { ...model.scorer.logit, positives: tensors.targets! };
    const [mean] = await device.read(fullSoftmax(tape, states, model.items, options));
    sum -= mean! * heldOut;
    events += heldOut;
  }
  return sum / events;
}

/** Marks targets that are no held-out events by -1; how many are left. */
function maskSeen({ offsets, target, users, ends }: SourceBatch, starts: Int32Array): number {
  let heldOut = 0;
  users.forEach((user, b) => {
    const [from, to] = [offsets[b]!, offsets[b + 1]!];
    const seen = Math.max(0, to - from - (ends[b]! - starts[user]! + 1)); // the part is the window's tail
    target.fill(-1, from, from + seen);
    heldOut += to - from - seen;
  });
  return heldOut;
}
