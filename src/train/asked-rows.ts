// Which rows of a shard the ranks of all groups read in a step: the requests to its owner and to the owner's peers.

import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Requests } from '../ops/changed-rows.js';
import { askedRows } from '../ops/read-again.js';
import type { Tensor } from '../tensor/tensor.js';

export interface AskedRows {
  /** Requests to this owner. */
  requests: readonly Requests[];
  /** The most ids that all groups request, and the number of rows of this shard. */
  most: number;
  here: number;
}

/** Local ids, ascending, padded with -1; the caller owns them. Collective over the peers. */
export function askedOfAll(
  device: Device,
  { peers }: RankGroups,
  { requests, most, here }: AskedRows,
  stream: StreamName,
): Tensor<'i32'> {
  const room = requests.reduce((sum, { ids }) => sum + ids.size, 0);
  const own = askedRows(device, requests, Math.min(room, here), stream);
  if (peers.size === 1) return own;
  using count = device.tensor([1, 1], 'i64');
  using counts = device.tensor([1, peers.size], 'i64');
  using ones = device.from(new BigInt64Array(peers.size).fill(1n), [1, peers.size], { stream });
  using ids = device.tensor([1, Math.max(1, most)], 'i32');
  device.call('comm_count_ids').number(0).tensor(own).tensor(count).submit(stream);
  peers.allGatherV(device, { send: count, receive: counts, counts: ones, unit: 1 });
  peers.allGatherV(device, { send: own, receive: ids, counts, unit: 1 });
  own.dispose();
  return askedRows(device, [{ ids, counts }], Math.min(most, here), stream);
}
