// Which rows of a shard the ranks of each group read in a step: the requests to its owner and to the owner's peers.

import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Requests } from '../ops/changed-rows.js';
import { askedRows } from '../ops/read-again.js';
import type { Tensor } from '../tensor/tensor.js';

export interface AskedOf {
  /** Requests to this owner. */
  requests: readonly Requests[];
  /** The most ids that all groups request, and the number of rows of this shard. */
  most: number;
  here: number;
}

/** Lists of local ids: ascending, padded with -1. */
export class AskedRows {
  /** Read by this group. */
  readonly own: Tensor<'i32'>;
  /** Read by each group; absent for one group. */
  readonly byGroup: Requests | undefined;
  /** Read by any group. */
  readonly any: Tensor<'i32'>;
  /** Read by all groups. */
  readonly every: Tensor<'i32'>;

  /** Collective over the peers. */
  constructor(device: Device, { peers }: RankGroups, { requests, most, here }: AskedOf, stream: StreamName) {
    const room = requests.reduce((sum, { ids }) => sum + ids.size, 0);
    this.own = askedRows(device, requests, { room: Math.min(room, here), stream });
    this.any = this.own;
    this.every = this.own;
    if (peers.size === 1) return;
    const counts = device.tensor([1, peers.size], 'i64');
    const ids = device.tensor([1, Math.max(1, most)], 'i32');
    using count = device.tensor([1, 1], 'i64');
    using ones = device.from(new BigInt64Array(peers.size).fill(1n), [1, peers.size], { stream });
    device.call('comm_count_ids').number(0).tensor(this.own).tensor(count).submit(stream);
    peers.allGatherV(device, { send: count, receive: counts, counts: ones, unit: 1 });
    peers.allGatherV(device, { send: this.own, receive: ids, counts, unit: 1 });
    this.byGroup = { ids, counts };
    this.any = askedRows(device, [this.byGroup], { room: Math.min(most, here), stream });
    this.every = askedRows(device, [this.byGroup], { room: this.own.size, least: peers.size, stream });
  }

  dispose(): void {
    const { ids, counts } = this.byGroup ?? {};
    for (const tensor of new Set([this.own, this.any, this.every, ids, counts])) tensor?.dispose();
  }
}
