// The rows of the item table that a step reads. They are fetched lane by lane; rows fetched before the last update was applied
// are sent again if it changed them.
//
// Only rows that two consecutive steps read must be exchanged between these steps. Ranks learn which these are while the first
// step computes. Between the steps they exchange the gradients of these rows and then the rows, and nothing else.

import type { ResolvedConfig } from '../config/schema.js';
import { SingleRank } from '../dist/comm/single-rank.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import { fetchOwned } from '../dist/shard/owned-negatives.js';
import { RowFetch } from '../dist/shard/row-fetch.js';
import type { RowOwners } from '../dist/shard/row-requests.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { WantedRows } from '../negatives/negative-segments.js';
import type { Model } from '../nn/model.js';
import { countChanged } from '../ops/changed-rows.js';
import type { RowBuffer } from '../ops/fetch-negatives.js';
import type { Tensor } from '../tensor/tensor.js';
import { AskedRows } from './asked-rows.js';
import { FirstRows } from './first-rows.js';
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
  /** Whether rows of negatives are fetched segment by segment, while the loss computes. */
  segmented: boolean;
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
  /** Rows of this shard that ranks read. */
  #asked: AskedRows | undefined;
  /** Rows whose gradients come first, since the next step reads them too. */
  first: FirstRows | undefined;

  constructor(parts: RowParts, of: RowsOf) {
    this.#parts = parts;
    this.#of = of;
  }

  /** Fetches the rows of a lane; without ids, only answers the requests of others. */
  fetch(ids: Tensor<'i32'> | undefined, round: Round, stream: StreamName): RowFetch {
    const { model, stale, objective, wire, halves, segmented } = this.#parts;
    const rooms = this.#rooms(round, tokens => (halves || segmented ? 2 * tokens : objective.mostRows(tokens)!));
    const dtype = wire === 'f16' ? wire : model.items.value.dtype;
    const instead = stale.before(this.#of.step);
    return this.#fetched(new RowFetch(this.#owners, { ids, rooms, instead, dtype, stream }));
  }

  fetchHalves(ids: Tensor<'i32'> | undefined, round: Round, stream: StreamName): RowFetch {
    const rooms = this.#rooms(round, tokens => this.#parts.objective.mostDraws(tokens));
    return this.#fetched(new RowFetch(this.#owners, { ids, rooms, halves: true, stream }));
  }

  /** How many segments the lanes of a round have at most; ranks whose lane has fewer answer the others. */
  segments(round: Round): number {
    return Math.max(...this.#segments(round).map(({ length }) => length));
  }

  /** Fetches a segment of negatives; without draws, only answers the requests of others. */
  fetchSegment(drawn: WantedRows | undefined, number: number, round: Round, stream: StreamName): void {
    const { device, model, objective } = this.#parts;
    const rooms = this.#segments(round).map(draws => Math.min(draws[number] ?? 0, model.items.vocabulary));
    const width = model.items.value.cols;
    const home = device.home(stream);
    const { normalizedEps } = objective;
    const answers = (rows: number): RowBuffer => objective.answers.take(number % 2 === 0 ? 0 : 1, rows, width);
    fetchOwned(this.#owners, { drawn, rooms, answers, normalizedEps, stream });
    device.home(home);
  }

  /** Tells owners and readers which rows both steps read. The rows of `next` are being fetched before this step's update. Collective. */
  meet(next: StepRows, stream: StreamName): void {
    const { device, groups, model } = this.#parts;
    const [asked, askedNext] = [this.#askedOfAll(stream), next.#askedOfAll(stream)];
    for (const fetch of next.#fetches) fetch.expect(asked.any, stream);
    const of = { fetches: this.#fetches, laneRows: this.#laneRows, here: model.items.value.rows, next: askedNext };
    this.first = new FirstRows(device, groups, of, stream);
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
    this.first?.dispose();
    this.#asked?.dispose();
  }

  #askedOfAll(stream: StreamName): AskedRows {
    const { device, model, groups } = this.#parts;
    const requests = this.#fetches.map(fetch => fetch.requests);
    const most = this.#laneRows.reduce((sum, rows) => sum + rows, 0);
    this.#asked ??= new AskedRows(device, groups, { requests, most, here: model.items.value.rows }, stream);
    return this.#asked;
  }

  /** The most rows that each lane reads. */
  get #laneRows(): number[] {
    return this.#of.laneTokens.map(tokens => (tokens === 0 ? 0 : this.#parts.objective.mostRows(tokens)!));
  }

  get #owners(): RowOwners {
    const { device, model, groups, divided } = this.#parts;
    return { device, table: model.items, group: divided ? groups.group : ALONE };
  }

  /** For each rank of the group, the most rows it requests in a round. */
  #rooms(round: Round, most: (tokens: number) => number): number[] {
    return this.#tokens(round).map(tokens => Math.min(most(tokens), this.#parts.model.items.vocabulary));
  }

  /** For each rank of the group, the draws of each segment of its lane. */
  #segments(round: Round): number[][] {
    const { objective, model } = this.#parts;
    return this.#tokens(round).map(tokens => objective.segmentDraws(tokens, model.items.vocabulary));
  }

  /** For each rank of the group, the tokens of its lane in a round. */
  #tokens({ number }: Round): number[] {
    const { laneTokens } = this.#of;
    const { group, world } = this.#parts.groups;
    const first = world.rank - group.rank;
    return Array.from({ length: group.size }, (_, member) => {
      const { from, to } = lanesOf(laneTokens.length, first + member, world.size);
      return from + number < to ? laneTokens[from + number]! : 0;
    });
  }

  #fetched(fetch: RowFetch): RowFetch {
    this.#fetches.push(fetch);
    return fetch;
  }
}
