// Encodes an evaluation's batches to states on the host. If the item table is sharded, ranks of a group process their batches
// in rounds: each fetches the rows of its batch from their owners; a rank without a batch answers the others.
//
// T tokens of a batch, S tokens whose states are read, D width.

import type { SourceBatch } from '../data/batch/batch-buffer.js';
import { gatherJson } from '../dist/comm/communicator.js';
import { type RankGroups, singleGroup } from '../dist/shard/rank-groups.js';
import { RowFetch } from '../dist/shard/row-fetch.js';
import type { ItemLookup } from '../nn/input-embedding.js';
import type { Model } from '../nn/model.js';
import { uniqueIds } from '../ops/staged-rows.js';
import { gatherRows } from '../ops/gather-rows.js';
import { Tape } from '../ops/tape.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import type { Tensor } from '../tensor/tensor.js';
import type { DealtBatches } from './dealt-batches.js';
import { placeOf } from './item-place.js';

export interface EncodeOptions<T> {
  model: Model;
  ranks?: RankGroups | undefined;
  batches: DealtBatches;
  /** What is kept of a batch, whose memory is reused for the next one. */
  keep: (batch: SourceBatch) => T;
  /** [S] tokens. */
  tokens: (batch: SourceBatch) => Int32Array;
  /** The result read from their states. */
  read: ReadStates;
}

export type ReadStates = (tape: Tape, states: Tensor<'f32'>) => Promise<Float32Array>;

export interface EncodedBatch<T> {
  kept: T;
  /** [S, D] */
  states: Float32Array;
}

/** The last token of each sequence. */
export function lastTokens({ offsets }: JaggedBatch): Int32Array {
  return offsets.slice(1).map(end => end - 1);
}

/** Collective over the group; ranks with fewer batches get empty ones. The next batch is computed while one is used. */
export async function* encodeRounds<T>(options: EncodeOptions<T>): AsyncGenerator<EncodedBatch<T>> {
  const { model, ranks = singleGroup(), batches, keep, tokens, read } = options;
  const { group } = placeOf(model, ranks);
  const sizes = await gatherJson(group, batches.tokens);
  const rounds = Math.max(...sizes.map(({ length }) => length));
  const start = (round: number): { kept: T; states: Promise<Float32Array> } => {
    const batch = batches.read(round);
    const rooms = sizes.map(size => Math.min(size[round] ?? 0, model.items.vocabulary));
    const states = encode(model, { batch, at: tokens(batch), read, fetch: { group, rooms } });
    states.catch(() => undefined); // an unawaited rejection must not end the process
    return { kept: keep(batch), states };
  };
  let next = rounds > 0 ? start(0) : undefined;
  for (let round = 1; next; round++) {
    const { kept, states } = next;
    next = round < rounds ? start(round) : undefined;
    yield { kept, states: await states };
  }
}

interface EncodeInput {
  batch: JaggedBatch;
  /** [S] tokens whose states are read. */
  at: Int32Array;
  read: ReadStates;
  /** Location of the rows, if sharded. */
  fetch?: { group: RankGroups['group']; rooms: readonly number[] };
}

/** [S, D] result of `read` on the states of some tokens. Collective over the group if the table is sharded. */
export async function encode(model: Model, { batch, at, read, fetch }: EncodeInput): Promise<Float32Array> {
  const { device } = model;
  using tape = new Tape(device, { training: false });
  const divided = model.items.shard.count > 1 ? fetch : undefined;
  if (batch.item.length === 0) {
    if (divided)
      new RowFetch(ownersOf(model, divided.group), {
        ids: undefined,
        rooms: divided.rooms,
        stream: 'compute',
      }).dispose();
    return new Float32Array(0);
  }
  using tensors = model.upload(batch);
  let lookup: ItemLookup | undefined;
  if (divided) {
    const { ids, places } = uniqueIds(device, { of: [tensors.items] }, model.items.vocabulary);
    const fetched = tape.own(
      new RowFetch(ownersOf(model, divided.group), { ids, rooms: divided.rooms, stream: 'compute' }),
    );
    lookup = { rows: fetched.staged!, ids: tape.own(places[0]!) };
  }
  const states = tape.scope(() => model.encode(tape, tensors, lookup)); // [T, D]
  using wanted = device.from(at);
  return await read(tape, gatherRows(tape, states, wanted)); // [S, D]
}

function ownersOf(model: Model, group: RankGroups['group']) {
  return { device: model.device, table: model.items, group };
}
