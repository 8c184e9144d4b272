// Fetches the rows of one lane from their owners: distinct ids are sent, rows come back in the order of the ids. An owner
// remembers the requests, so that rows changed by an update meanwhile can be sent again. Which rows these may be can be agreed
// before the update is known.
//
// Collective over the group: a rank without a lane takes part with no ids. In a group of one rank nothing moves.
//
// U most rows that the lane reads, n ranks of the group, D width.

import type { StreamName } from '../../native/call.js';
import { changedRows, type ChangedRows, putRows, type Requests } from '../../ops/changed-rows.js';
import { pickNegatives } from '../../ops/fetch-negatives.js';
import { emptyHalfRows, type HalfRows } from '../../ops/half-rows.js';
import { pickRows, type RoutedIds, routeIds } from '../../ops/route-ids.js';
import type { RowList } from '../../ops/row-list.js';
import type { RowDtype } from '../../ops/row-source.js';
import { StagedRows } from '../../ops/staged-rows.js';
import type { Tensor } from '../../tensor/tensor.js';
import { exchangeCounts, exchangeIds, type RowOwners } from './row-requests.js';

export interface FetchOptions {
  /** [U] ascending, consumed; absent for a rank without a lane. */
  ids: Tensor<'i32'> | undefined;
  /** For each rank of the group, the most ids it requests. */
  rooms: readonly number[];
  /** Rows to answer with instead of the table's, by local row; if several lists have a row, the last wins. */
  instead?: readonly RowList[];
  dtype?: RowDtype;
  /** Fetch rows in scaled FP16 instead of staged rows. They are not sent again. */
  halves?: boolean;
  stream: StreamName;
}

/** Rows that will be sent again. */
interface Resend {
  /** Rows that this rank sends. */
  readonly send: ChangedRows;
  /** Where received rows go: positions in each owner's part; absent in a group of one rank. */
  readonly put: { at: Tensor<'i32'>; counts: Tensor<'i64'>; back: RoutedIds | undefined } | undefined;
}

/** Parts of a tensor, one for each rank of the group. */
type Counted = readonly [tensor: Tensor, counts: Tensor<'i64'>];

export class RowFetch {
  /** The fetched rows; absent without a lane, and for FP16. */
  readonly staged: StagedRows | undefined;
  /** The same in FP16, in the order of the ids. */
  readonly halves: HalfRows | undefined;
  /** The requests to this rank, by local row. */
  readonly requests: Requests;
  readonly #owners: RowOwners;
  readonly #asked: Tensor<'i32'>;
  readonly #dtype: RowDtype;
  readonly #route: RoutedIds | undefined;
  readonly #owned: Tensor[] = [];
  #resend: Resend | undefined;

  constructor(owners: RowOwners, { ids, rooms, instead = [], dtype, halves = false, stream }: FetchOptions) {
    const { device, table, group } = owners;
    this.#owners = owners;
    this.#dtype = dtype ?? table.value.dtype;
    this.#asked = ids ?? this.#own(device.from(Int32Array.of(-1), [1, 1], { stream }));
    if (group.size === 1) {
      const counts = this.#own(device.tensor([1, 1], 'i64'));
      device.call('comm_count_ids').number(0).tensor(this.#asked).tensor(counts).submit(stream);
      this.requests = { ids: this.#asked, counts };
    } else {
      this.#route = routeIds(device, this.#asked, { owners: group.size, order: 'to-routed', stream });
      this.#own(this.#route.local, this.#route.order, this.#route.counts);
      this.requests = exchangeIds(owners, this.#route, rooms, stream);
      this.#own(this.requests.ids, this.requests.counts);
    }
    if (halves) {
      const fetched = this.#fetchHalves(stream);
      this.#own(fetched.rows, fetched.factors, this.#asked);
      if (ids) this.halves = fetched;
      return;
    }
    const answers = this.#answer(instead, stream);
    if (group.size === 1) {
      this.staged = ids && new StagedRows(device, table, ids, { rows: answers });
      return;
    }
    using routed = device.tensor([this.#asked.size, table.value.cols], this.#dtype);
    this.#exchange([answers, this.requests.counts], [routed, this.#route!.counts], table.value.cols);
    answers.dispose();
    if (!ids) return;
    const rows = device.tensor([ids.size, table.value.cols], this.#dtype);
    pickRows(device, { from: routed, ids: this.#route!.order, to: rows }, stream);
    this.staged = new StagedRows(device, table, ids, { rows });
  }

  /** What this rank requested, by owner. In a group of several ranks. */
  get asked(): Requests {
    return { ids: this.#asked, counts: this.#route!.counts };
  }

  /** Announces that the next update changes only rows in this ascending list of local ids, to the ranks that fetched them. Collective. */
  expect(list: Tensor<'i32'>, stream: StreamName): void {
    const { device, group } = this.#owners;
    const send = changedRows(device, this.requests, { list, from: 'id' }, stream);
    if (group.size === 1) {
      this.#resend = { send, put: undefined };
      return;
    }
    const [at, counts] = this.#tell(send.at, send.counts, stream);
    const back = this.staged && routeIds(device, this.#asked, { owners: group.size, order: 'from-routed', stream });
    this.#resend = { send, put: { at, counts, back } };
  }

  /** Fetches again the rows announced by `expect`; without an announcement, those in `list` (ascending local ids). Collective. */
  refresh(list: Tensor<'i32'>, stream: StreamName): void {
    const { device, table } = this.#owners;
    if (!this.#resend) this.expect(list, stream);
    const { send, put } = this.#resend!;
    const width = table.value.cols;
    using answers = device.tensor([this.requests.ids.size, width], this.#dtype);
    pickRows(device, { from: table.value, ids: send.from, counts: send.counts, to: answers }, stream);
    if (!put) {
      const places = { at: send.at, counts: send.counts, parts: this.requests.counts };
      if (this.staged) putRows(device, answers, places, this.staged.value, stream);
    } else {
      const { at, counts, back } = put;
      using rows = device.tensor([this.#asked.size, width], this.#dtype);
      this.#exchange([answers, send.counts], [rows, counts], width);
      if (this.staged && back) {
        const places = { at, counts, parts: back.counts, order: back.order };
        putRows(device, rows, places, this.staged.value, stream);
      }
    }
    this.#forgetResend();
  }

  /** The rows requested by this rank that are in their owners' lists, as local ids by owner. The caller owns them. Collective. */
  among(list: Tensor<'i32'>, stream: StreamName): Requests {
    const { at, from, counts } = changedRows(this.#owners.device, this.requests, { list, from: 'id' }, stream);
    const [ids, received] = this.#tell(from, counts, stream);
    for (const tensor of [at, from, counts]) tensor.dispose();
    return { ids, counts: received };
  }

  dispose(): void {
    this.staged?.dispose();
    this.#forgetResend();
    for (const tensor of this.#owned) tensor.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #forgetResend(): void {
    const { send, put } = this.#resend ?? {};
    for (const tensor of Object.values({ ...send, ...put?.back })) tensor.dispose();
    put?.at.dispose();
    put?.counts.dispose();
    this.#resend = undefined;
  }

  /** Sends each requester some positions or ids of its part; the caller owns what this rank receives. */
  #tell(send: Tensor<'i32'>, sendCounts: Tensor<'i64'>, stream: StreamName): [Tensor<'i32'>, Tensor<'i64'>] {
    const { device, group } = this.#owners;
    const counts = exchangeCounts(device, group, sendCounts, stream);
    const received = device.tensor([1, this.#asked.size], 'i32');
    this.#exchange([send, sendCounts], [received, counts]);
    return [received, counts];
  }

  /** Rows in the order of the ids that this rank requested. */
  #fetchHalves(stream: StreamName): HalfRows {
    const { device, table, group } = this.#owners;
    const { ids, counts } = this.requests;
    const width = table.value.cols;
    const answers = emptyHalfRows(device, ids.size, width);
    pickNegatives(device, { from: table.value, ids, counts, to: answers }, stream);
    if (group.size === 1) return answers;
    const room = (): HalfRows => emptyHalfRows(device, this.#asked.size, width);
    const [routed, to] = [room(), room()];
    for (const [part, unit] of [['rows', width] as const, ['factors', 1] as const]) {
      this.#exchange([answers[part], counts], [routed[part], this.#route!.counts], unit);
      pickRows<RowDtype>(device, { from: routed[part], ids: this.#route!.order, to: to[part] }, stream);
      answers[part].dispose();
      routed[part].dispose();
    }
    return to;
  }

  /** [requests, D] the requested rows. */
  #answer(instead: readonly RowList[], stream: StreamName): Tensor<RowDtype> {
    const { device, table } = this.#owners;
    const { ids, counts } = this.requests;
    const to = device.tensor([ids.size, table.value.cols], this.#dtype);
    pickRows(device, { from: table.value, ids, counts, to }, stream);
    for (const list of instead) {
      const found = changedRows(device, this.requests, { list: list.ids, from: 'list' }, stream);
      using rows = device.tensor([ids.size, table.value.cols], this.#dtype);
      pickRows(device, { from: list.rows, ids: found.from, counts: found.counts, to: rows }, stream);
      putRows(device, rows, { at: found.at, counts: found.counts, parts: counts }, to, stream);
      for (const tensor of [found.at, found.from, found.counts]) tensor.dispose();
    }
    return to;
  }

  /** Exchanges ids or rows: what is sent from each rank's part, and where it goes. */
  #exchange([send, sendCounts]: Counted, [receive, receiveCounts]: Counted, unit = 1): void {
    const { device, group } = this.#owners;
    group.allToAllV(device, { send, sendCounts, receive, receiveCounts, unit });
  }

  #own<T extends Tensor>(...tensors: [T, ...Tensor[]]): T {
    this.#owned.push(...tensors);
    return tensors[0];
  }
}
