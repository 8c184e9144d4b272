// Mean log-likelihood of the held-out events under the model: log of the softmax over the whole catalogue, without exclusions.
// Its negative is the held-out loss of full softmax.
//
// Ranks share the events. Each event's logarithm is computed separately, and they are added in the order of the events, so the
// result does not depend on batches or ranks.
//
// E held-out events of a batch, D model width.

import type { SourceBatch } from '../data/batch/batch-buffer.js';
import { heldOutWindows, partBounds, sampleUsers } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { joinColumns } from '../dist/comm/gather-columns.js';
import { type RankGroups, singleGroup } from '../dist/shard/rank-groups.js';
import type { Model } from '../nn/model.js';
import { Tape } from '../ops/tape.js';
import { EVALUATED_USERS } from './cases.js';
import { CatalogueScan } from './catalogue-scan.js';
import { DealtBatches } from './dealt-batches.js';
import { encodeRounds } from './encode-rounds.js';
import { placeOf } from './item-place.js';

export interface LikelihoodInput {
  model: Model;
  source: SequenceSource;
  part: 'validation' | 'test';
  /** Evaluate this many users only, always the same ones. Default: all. */
  users?: number;
  ranks?: RankGroups;
}

/** If a user has more held-out events than the model can read, only the newest count. Collective. */
export async function logLikelihood(input: LikelihoodInput): Promise<number> {
  const { model, source, part, users, ranks = singleGroup() } = input;
  const { device, scorer } = model;
  const { maxLength } = model.definition;
  const windows = sampleUsers(heldOutWindows(source, { part, maxLength }), users, EVALUATED_USERS);
  const [starts] = partBounds(source, part);
  using tape = new Tape(device, { training: false });
  const table = scorer.itemVectors(tape);
  const rows = { ...placeOf(model, ranks), device, table, items: model.items.vocabulary };
  const rounds = encodeRounds({
    model,
    ranks,
    batches: new DealtBatches(source, windows, { maxLength, ranks }),
    tokens: batch => heldOut(batch, starts),
    read: scorer.queries.bind(scorer), // [E, D]
    keep: batch => heldOut(batch, starts).map(token => batch.target[token]!),
  });
  const own: number[] = [];
  for await (const { kept: targets, states: queries } of rounds) {
    using scan = await CatalogueScan.begin(rows, { queries });
    own.push(...(await scan.logProbabilities(targets)));
  }
  const { all } = await joinColumns(ranks.world, { all: Float64Array.from(own) });
  return all.reduce((sum, x) => sum + x, 0) / all.length;
}

/** Tokens whose targets are held-out events: the tail of each window. */
function heldOut({ offsets, users, ends }: SourceBatch, starts: Int32Array): Int32Array {
  const tokens: number[] = [];
  users.forEach((user, b) => {
    const [from, to] = [offsets[b]!, offsets[b + 1]!];
    const seen = Math.max(0, to - from - (ends[b]! - starts[user]! + 1));
    for (let token = from + seen; token < to; token++) tokens.push(token);
  });
  return Int32Array.from(tokens);
}
