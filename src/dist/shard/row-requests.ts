// Requests for rows of a sharded table: every rank of a group sends its ids to the owners of the rows.
//
// n ranks of the group.

import type { StreamName } from '../../native/call.js';
import type { Device } from '../../native/device.js';
import type { Requests } from '../../ops/changed-rows.js';
import type { RoutedIds } from '../../ops/route-ids.js';
import type { Table } from '../../ops/table.js';
import type { Tensor } from '../../tensor/tensor.js';
import { ownedRows } from '../../util/row-shard.js';
import type { Communicator } from '../comm/communicator.js';

export interface RowOwners {
  device: Device;
  /** This rank's rows. */
  table: Table;
  group: Communicator;
}

/** The requests to this rank, by local row. `rooms`: for each rank, the most ids it sends. The caller owns them. Collective. */
export function exchangeIds(
  { device, table, group }: RowOwners,
  { local, counts }: RoutedIds,
  rooms: readonly number[],
  stream: StreamName,
): Requests {
  const here = ownedRows(table.vocabulary, { index: group.rank, count: group.size });
  const room = rooms.reduce((sum, most) => sum + Math.min(most, here), 0);
  const received = exchangeCounts(device, group, counts, stream);
  const ids = device.tensor([1, Math.max(1, room)], 'i32');
  group.allToAllV(device, { send: local, sendCounts: counts, receive: ids, receiveCounts: received, unit: 1 });
  return { ids, counts: received };
}

/** [1, n] what the others send to this rank. The caller owns it. Collective. */
export function exchangeCounts(
  device: Device,
  group: Communicator,
  counts: Tensor<'i64'>,
  stream: StreamName,
): Tensor<'i64'> {
  using ones = device.from(new BigInt64Array(group.size).fill(1n), [1, group.size], { stream });
  const received = device.tensor([1, group.size], 'i64');
  group.allToAllV(device, { send: counts, sendCounts: ones, receive: received, receiveCounts: ones, unit: 1 });
  return received;
}
