// The model on the cases of an evaluation: exact ranks in the whole catalogue, and the top of the lists where asked.
// Works batch by batch; a matrix of users by items is never made.
//
// C cases of a batch, D model width, V items, k list length.

import type { Model } from '../nn/model.js';
import { Tape } from '../ops/tape.js';
import { targetRank } from '../ops/target-rank.js';
import { topK } from '../ops/top-k.js';
import { type CaseOptions, evaluationCases } from './cases.js';
import { lastStates } from './last-states.js';
import type { RankedCases } from './metrics.js';

export interface RankOptions extends Omit<CaseOptions, 'maxLength'> {
  model: Model;
  /** Also return this many top items of every case. */
  listLength?: number;
}

export interface ModelRanks extends RankedCases {
  /** [C] the items that were to be found. */
  targets: Int32Array;
  /** [C * k] recommended items, -1 where fewer were left. */
  lists: Int32Array;
  /** Cases in which the last input item ranks first when nothing is left out; with `listLength` only. */
  selfFirst: number;
}

export async function rankCases({ model, listLength = 0, ...options }: RankOptions): Promise<ModelRanks> {
  const { device } = model;
  const { maxLength } = model.definition;
  using tape = new Tape(device, { training: false });
  const table = model.scorer.itemVectors(tape); // [V, D]
  const parts: RankedBatch[] = [];
  let selfFirst = 0;
  for (const { batch, targets, excluded, excludedOffsets } of evaluationCases({ ...options, maxLength })) {
    using batchTape = new Tape(device, { training: false });
    using tensors = model.upload(batch);
    using wanted = device.from(targets);
    using ids = device.from(excluded);
    using offsets = device.from(excludedOffsets);
    const queries = lastStates(batchTape, model, tensors, batch.offsets); // [C, D]
    const left = { excluded: { ids, offsets } };
    using ranks = targetRank(device, queries, table, { ...left, targets: wanted });
    const part = { users: batch.users.slice(), targets, ranks: later(device.read(ranks)) };
    if (listLength === 0) {
      parts.push(part);
    } else {
      const top = topK(device, queries, table, { ...left, k: listLength });
      const first = topK(device, queries, table, { k: 1 });
      parts.push({ ...part, lists: later(device.read(top.ids)) });
      const firsts = await device.read(first.ids);
      firsts.forEach((item, c) => {
        if (item === batch.item[batch.offsets[c + 1]! - 1]) selfFirst++;
      });
      for (const tensor of [top.ids, top.scores, first.ids, first.scores]) tensor.dispose();
    }
    // Two batches under way keep the device busy; more would only hold memory.
    await parts.at(-2)?.ranks;
  }
  return {
    items: options.source.items,
    users: joined(parts.map(part => part.users)),
    targets: joined(parts.map(part => part.targets)),
    ranks: joined(await Promise.all(parts.map(part => part.ranks))),
    lists: joined(await Promise.all(parts.map(part => part.lists ?? Promise.resolve(new Int32Array(0))))),
    selfFirst,
  };
}

/** A promise that is awaited later: should an earlier one fail, nobody asks for this one, and its error is no crash. */
function later<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

interface RankedBatch {
  users: Int32Array;
  targets: Int32Array;
  ranks: Promise<Int32Array>;
  lists?: Promise<Int32Array>;
}

export function joined(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
