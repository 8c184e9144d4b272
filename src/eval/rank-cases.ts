// Ranks the cases of an evaluation by the model: exact ranks in the whole catalogue, and optionally the top of the lists. Works
// batch by batch; the user-by-item matrix is never stored. Ranks share the cases and, if the item table is sharded, also the
// scoring.
//
// C cases, D model width, V items, k list length.

import type { Communicator } from '../dist/comm/communicator.js';
import { joinColumns } from '../dist/comm/gather-columns.js';
import { singleGroup } from '../dist/shard/rank-groups.js';
import type { Model } from '../nn/model.js';
import { Tape } from '../ops/tape.js';
import { caseBatch, caseBatches, type CaseOptions } from './cases.js';
import { CatalogueScan } from './catalogue-scan.js';
import { encodeRounds, lastTokens } from './encode-rounds.js';
import { placeOf } from './item-place.js';
import { joined, type Lists } from './lists.js';
import type { RankedCases } from './metrics.js';

export interface RankOptions extends Omit<CaseOptions, 'maxLength'> {
  model: Model;
  /** Also return this many top items of every case. */
  listLength?: number;
}

export interface ModelRanks extends RankedCases {
  /** [C] the targets. */
  targets: Int32Array;
  /** [C * k] recommended items, padded with -1. */
  lists: Int32Array;
  /** Number of cases in which the last input item ranks first without exclusions; with `listLength` only. */
  selfFirst: number;
}

/** Of all cases, on every rank. Collective. */
export async function rankCases({ model, listLength = 0, ...options }: RankOptions): Promise<ModelRanks> {
  const { device, definition } = model;
  const { source, ranks = singleGroup() } = options;
  using tape = new Tape(device, { training: false });
  const table = model.scorer.itemVectors(tape); // [V, D]
  const rows = { ...placeOf(model, ranks), device, table, items: model.items.vocabulary };
  const which = { ...options, maxLength: definition.maxLength };
  const parts: RankedBatch[] = [];
  const rounds = encodeRounds({
    model,
    ranks,
    batches: caseBatches(which),
    tokens: lastTokens,
    read: (_, states) => device.read(states),
    keep: batch => {
      const { targets, excluded, excludedOffsets } = caseBatch(which, batch);
      const left = { ids: excluded.slice(), offsets: excludedOffsets.slice() };
      return { users: batch.users.slice(), targets, left, last: lastTokens(batch).map(t => batch.item[t]!) };
    },
  });
  for await (const { kept, states } of rounds) {
    using scan = await CatalogueScan.begin(rows, { queries: states });
    parts.push(await rankBatch(scan, kept, listLength));
  }
  return await joinRanks(ranks.world, parts, source.items);
}

/** Results of some cases. */
export interface RankedBatch {
  users: Int32Array;
  targets: Int32Array;
  ranks: Int32Array;
  lists: Int32Array;
  /** Last input items that rank first. */
  selfFirst: Int32Array;
}

/** Cases to be ranked. */
export interface CaseTargets {
  users: Int32Array;
  targets: Int32Array;
  /** Excluded from the ranking. */
  left: Lists;
  /** The last input item of each. */
  last: ArrayLike<number | undefined>;
}

export async function rankBatch(scan: CatalogueScan, cases: CaseTargets, listLength: number): Promise<RankedBatch> {
  const { users, targets, left, last } = cases;
  const ranks = await scan.ranks(targets, left);
  if (listLength === 0) return { users, targets, ranks, lists: new Int32Array(0), selfFirst: new Int32Array(0) };
  const { ids: lists } = await scan.best(listLength, left);
  const { ids: first } = await scan.best(1);
  return { users, targets, ranks, lists, selfFirst: first.filter((item, c) => item === last[c]) };
}

/** The batches of all ranks. Collective. */
export async function joinRanks(
  world: Communicator,
  parts: readonly RankedBatch[],
  items: number,
): Promise<ModelRanks> {
  const all = await joinColumns(world, {
    users: joined(parts.map(part => part.users)),
    targets: joined(parts.map(part => part.targets)),
    ranks: joined(parts.map(part => part.ranks)),
    lists: joined(parts.map(part => part.lists)),
    selfFirst: joined(parts.map(part => part.selfFirst)),
  });
  return { ...all, selfFirst: all.selfFirst.length, items };
}
