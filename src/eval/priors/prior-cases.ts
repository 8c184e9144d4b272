// The cases of an evaluation for the priors: the model's states on the host, whole histories, and exclusions. States include
// normalisation and temperature, so that state . row is the logit of the loss.

import type { SourceBatch } from '../../data/batch/batch-buffer.js';
import { type RankGroups, singleGroup } from '../../dist/shard/rank-groups.js';
import type { Model } from '../../nn/model.js';
import { Tape } from '../../ops/tape.js';
import type { JaggedBatch } from '../../tensor/jagged.js';
import { caseBatch, caseBatches, type CaseOptions, wholeHistory } from '../cases.js';
import { encode, encodeRounds, lastTokens } from '../encode-rounds.js';
import { placeOf } from '../item-place.js';
import { type LogitRows, NO_MODEL, type PriorCases } from './prior-scorer.js';

/** The model's item rows, or this rank's. */
export async function logitRows(model: Model | undefined, ranks: RankGroups = singleGroup()): Promise<LogitRows> {
  if (!model) return NO_MODEL;
  using tape = new Tape(model.device, { training: false });
  const rows = await model.device.read(model.scorer.itemVectors(tape));
  return { rows, width: model.definition.d, ...placeOf(model, ranks) };
}

export interface CasesWithTargets extends PriorCases {
  users: Int32Array;
  targets: Int32Array;
}

/** This rank's batches in the order of `evaluationCases`, padded with empty ones if other ranks of the group have more. */
export async function* priorCases(options: CaseOptions, model: Model | undefined): AsyncGenerator<CasesWithTargets> {
  const batches = caseBatches(options);
  const keep = (batch: SourceBatch): Omit<CasesWithTargets, 'states'> => {
    const { targets, excluded, excludedOffsets } = caseBatch(options, batch);
    const cases = Array.from(targets.keys());
    return {
      users: batch.users.slice(),
      targets,
      histories: cases.map(c => wholeHistory(options.source, batch, c)),
      excluded: cases.map(c => new Set(excluded.subarray(excludedOffsets[c], excludedOffsets[c + 1]))),
    };
  };
  if (!model) {
    for (const position of batches.tokens.keys()) yield { ...keep(batches.read(position)), states: NO_MODEL.rows };
    return;
  }
  const { scorer } = model;
  const read = scorer.queries.bind(scorer);
  const rounds = encodeRounds({ model, ranks: options.ranks, batches, keep, tokens: lastTokens, read });
  for await (const { kept, states } of rounds) yield { ...kept, states };
}

/** [C, D] states after each sequence, scaled so that the dot product with a row is the logit. */
export function scaledStates(model: Model, batch: JaggedBatch): Promise<Float32Array> {
  const { scorer } = model;
  return encode(model, { batch, at: lastTokens(batch), read: scorer.queries.bind(scorer) });
}
