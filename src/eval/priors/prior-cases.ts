// The cases of an evaluation as the priors need them: the model's states on the host, whole histories, and what is left
// out. States carry normalisation and temperature, so that state . row is the logit that the loss trains.

import type { Model } from '../../nn/model.js';
import { Tape } from '../../ops/tape.js';
import type { JaggedBatch } from '../../tensor/jagged.js';
import { type CaseOptions, evaluationCases, wholeHistory } from '../cases.js';
import { lastStates } from '../last-states.js';
import { type LogitRows, NO_MODEL, type PriorCases } from './prior-scorer.js';

export async function logitRows(model: Model | undefined): Promise<LogitRows> {
  if (!model) return NO_MODEL;
  using tape = new Tape(model.device, { training: false });
  const rows = await model.device.read(model.scorer.itemVectors(tape));
  return { rows, width: model.definition.d };
}

export interface CasesWithTargets extends PriorCases {
  users: Int32Array;
  targets: Int32Array;
}

/** Batches of cases in the order of `evaluationCases`. */
export async function* priorCases(options: CaseOptions, model: Model | undefined): AsyncGenerator<CasesWithTargets> {
  for (const { batch, targets, excluded, excludedOffsets } of evaluationCases(options)) {
    const cases = Array.from(targets.keys());
    const found = {
      users: batch.users.slice(),
      targets,
      histories: cases.map(c => wholeHistory(options.source, batch, c)),
      excluded: cases.map(c => new Set(excluded.subarray(excludedOffsets[c], excludedOffsets[c + 1]))),
    };
    yield { ...found, states: await scaledStates(model, batch) };
  }
}

/** [C, D] states after each sequence, scaled so that their product with a row is the logit. */
export async function scaledStates(model: Model | undefined, batch: JaggedBatch): Promise<Float32Array> {
  if (!model) return NO_MODEL.rows;
  using tape = new Tape(model.device, { training: false });
  using tensors = model.upload(batch);
  const last = lastStates(tape, model, tensors, batch.offsets);
  return await model.scorer.queries(tape, last);
}
