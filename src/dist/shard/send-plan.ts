// Which rows of lists go to which rank. Ids and their numbers are exchanged in advance, so that nothing but the rows is left to
// send once their values are known. A list may turn out to lack some of them.
//
// n ranks, D width.

import type { StreamName } from '../../native/call.js';
import type { Device } from '../../native/device.js';
import type { Requests } from '../../ops/changed-rows.js';
import { pickAgreed, pickRows, type RoutedIds, takeList } from '../../ops/route-ids.js';
import { emptyRowList, type RowList } from '../../ops/row-list.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { Communicator } from '../comm/communicator.js';
import { exchangeCounts } from './row-requests.js';

export interface ListsToPlan {
  /** What this rank sends, by rank; `order` has places in its list. Consumed. */
  sent: RoutedIds;
  /** The ids of those places, ascending, if the list is not known yet and may lack some of them. Consumed. */
  agreed?: Tensor<'i32'> | undefined;
  /** The most rows to receive. */
  room: number;
}

export interface ListsToMove {
  /** This rank's list, if it has one. */
  own: RowList | undefined;
  /** For each rank, the capacity of its list in rows; undefined when it sends none. */
  rooms: readonly (number | undefined)[];
  table: { vocabulary: number; width: number };
}

export class SendPlan {
  /** The ids of the rows that this rank receives, by sender. */
  readonly received: Requests;
  readonly #device: Device;
  readonly #ranks: Communicator;
  readonly #sent: RoutedIds;
  readonly #agreed: Tensor<'i32'> | undefined;

  /** Collective. */
  constructor(device: Device, ranks: Communicator, { sent, agreed, room }: ListsToPlan, stream: StreamName) {
    this.#device = device;
    this.#ranks = ranks;
    this.#sent = sent;
    this.#agreed = agreed;
    const counts = exchangeCounts(device, ranks, sent.counts, stream);
    this.received = { ids: device.tensor([1, Math.max(1, room)], 'i32'), counts };
    this.#exchange(sent.local, this.received.ids);
  }

  /** For each rank, the rows that it sent to this one; absent when it sends none. Collective. */
  move({ own, rooms, table }: ListsToMove, stream: StreamName): (RowList | undefined)[] {
    const device = this.#device;
    const { ids } = this.received;
    using sent = device.tensor([this.#sent.order.size, table.width]);
    if (own) this.#pick(own, sent, stream);
    using received = device.tensor([ids.size, table.width]);
    this.#exchange(sent, received, table.width);
    return rooms.map((most, index) => {
      if (most === undefined) return undefined;
      const to = emptyRowList(device, most, table);
      takeList(device, { list: { ids, rows: received }, counts: this.received.counts, index, to }, stream);
      return to;
    });
  }

  dispose(): void {
    for (const tensor of [...Object.values(this.#sent), this.received.ids, this.received.counts]) tensor.dispose();
    this.#agreed?.dispose();
  }

  #pick(from: RowList, to: Tensor<'f32'>, stream: StreamName): void {
    const { order, counts } = this.#sent;
    if (this.#agreed) pickAgreed(this.#device, { from, agreed: this.#agreed, order, counts, to }, stream);
    else pickRows(this.#device, { from: from.rows, ids: order, counts, to }, stream);
  }

  #exchange(send: Tensor, receive: Tensor, unit = 1): void {
    const counts = { sendCounts: this.#sent.counts, receiveCounts: this.received.counts };
    this.#ranks.allToAllV(this.#device, { send, receive, ...counts, unit });
  }
}
