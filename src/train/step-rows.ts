// The rows of the item table that a step reads. They are fetched lane by lane; rows fetched before the last update was applied
// are sent again if it changed them.
//
// Only rows that two consecutive steps read must be exchanged between these steps. Ranks learn which these are while the first
// step computes. Between the steps they exchange the gradients of these rows and then the rows, and nothing else.

import type { ResolvedConfig } from '../config/schema.js';
import { SingleRank } from '../dist/comm/single-rank.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import { RowFetch, type RowOwners } from '../dist/shard/row-fetch.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Model } from '../nn/model.js';
import { countChanged, type Requests } from '../ops/changed-rows.js';
import type { Tensor } from '../tensor/tensor.js';
import { askedOfAll } from './asked-rows.js';
import { lanesOf } from './lane-tree.js';
import type { Objective } from './objective.js';
import type { Round } from './stages.js';
import type { StaleRows } from './stale-rows.js';

export interface RowParts {
  device: Device;
  model: Model;
  objective: Objective;
  groups: RankGroups;
  /** Whether the item table is sharded over the ranks of a group. */
  divided: boolean;
  /** Data type of the copies, if not that of the table. */
  wire: ResolvedConfig['wire'];
  /** Whether owners send the rows of negatives in FP16. */
  halves: boolean;
  stale: StaleRows;
}

interface RowsOf {
  step: number;
  /** Tokens per lane, over all ranks. */
  laneTokens: readonly number[];
}

/** Rows of a replicated table are fetched locally. */
const ALONE = new SingleRank();

export class StepRows {
  readonly #parts: RowParts;
  readonly #of: RowsOf;
  readonly #fetches: RowFetch[] = [];
  /** Rows of this shard that any rank reads. */
  #asked: Tensor<'i32'> | undefined;
  /** Rows read by this rank's lanes that any rank reads in the next step: local ids, by owner. */
  again: readonly Requests[] | undefined;

  constructor(parts: RowParts, of: RowsOf) {
    this.#parts = parts;
    this.#of = of;
  }

  /** Fetches the rows of a lane; without ids, only answers the requests of others. */
  fetch(ids: Tensor<'i32'> | undefined, round: Round, stream: StreamName): RowFetch {
    const { model, stale, objective, wire, halves } = this.#parts;
    const rooms = this.#rooms(round, tokens => (halves ? 2 * tokens : objective.mostRows(tokens)!));
    const dtype = wire === 'f16' ? wire : model.items.value.dtype;
    const instead = stale.before(this.#of.step);
    return this.#fetched(new RowFetch(this.#owners, { ids, rooms, instead, dtype, stream }));
  }

  fetchHalves(ids: Tensor<'i32'> | undefined, round: Round, stream: StreamName): RowFetch {
    const rooms = this.#rooms(round, tokens => this.#parts.objective.mostDraws(tokens));
    return this.#fetched(new RowFetch(this.#owners, { ids, rooms, halves: true, stream }));
  }

  /** Tells owners and readers which rows both steps read. The rows of `next` are being fetched before this step's update. Collective. */
  meet(next: StepRows, stream: StreamName): void {
    const [asked, askedNext] = [this.#askedOfAll(stream), next.#askedOfAll(stream)];
    for (const fetch of next.#fetches) fetch.expect(asked, stream);
    this.again = this.#fetches.map(fetch => fetch.among(askedNext, stream));
  }

  /** Counts the rows that the last updates changed and, if exact, fetches them again. Resolves to [read, changed]. */
  catchUp(changed: readonly Tensor<'i32'>[], stream: StreamName): Promise<BigInt64Array> {
    const { device, stale } = this.#parts;
    using counts = device.from(BigInt64Array.of(0n, 0n), [1, 2], { stream });
    for (const fetch of this.#fetches) {
      countChanged(device, fetch.requests, changed, counts, stream);
      if (stale.exact) fetch.refresh(changed[0]!, stream);
    }
    return device.read(counts, stream);
  }

  dispose(): void {
    for (const fetch of this.#fetches) fetch.dispose();
    for (const { ids, counts } of this.again ?? []) {
      ids.dispose();
      counts.dispose();
    }
    this.#asked?.dispose();
  }

  #askedOfAll(stream: StreamName): Tensor<'i32'> {
    const { device, model, groups, objective } = this.#parts;
    const requests = this.#fetches.map(fetch => fetch.requests);
    const most = this.#of.laneTokens.reduce((sum, tokens) => sum + objective.mostRows(tokens)!, 0);
    this.#asked ??= askedOfAll(device, groups, { requests, most, here: model.items.value.rows }, stream);
    return this.#asked;
  }

  get #owners(): RowOwners {
    const { device, model, groups, divided } = this.#parts;
    return { device, table: model.items, group: divided ? groups.group : ALONE };
  }

  /** For each rank of the group, the most rows it requests in a round. */
  #rooms({ number }: Round, most: (tokens: number) => number): number[] {
    const { model, groups } = this.#parts;
    const { laneTokens } = this.#of;
    const { group, world } = groups;
    const first = world.rank - group.rank;
    return Array.from({ length: group.size }, (_, member) => {
      const { from, to } = lanesOf(laneTokens.length, first + member, world.size);
      const tokens = from + number < to ? laneTokens[from + number]! : 0;
      return Math.min(most(tokens), model.items.vocabulary);
    });
  }

  #fetched(fetch: RowFetch): RowFetch {
    this.#fetches.push(fetch);
    return fetch;
  }
}
