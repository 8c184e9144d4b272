// Sends gradient rows to the owners of the rows: every rank of a group sends a list, or none, and receives its own rows of
// all lists.
//
// n ranks of the group, D width.

import type { StreamName } from '../../native/call.js';
import type { Device } from '../../native/device.js';
import { keepRouted, type RowChoice } from '../../ops/read-again.js';
import { pickRows, routeIds, takeList } from '../../ops/route-ids.js';
import { disposeRowList, emptyRowList, type RowList } from '../../ops/row-list.js';
import { ownedRows } from '../../util/row-shard.js';
import type { Communicator } from '../comm/communicator.js';

export interface ListsToSend {
  /** This rank's list, by row of the whole table. Consumed, except when only the rows inside a choice are sent: the rest follows later. */
  own: RowList | undefined;
  /** For each rank, the capacity of its list in rows; undefined when it sends none. */
  rooms: readonly (number | undefined)[];
  table: { vocabulary: number; width: number };
  /** Restricts the lists to some rows. */
  only?: RowChoice | undefined;
}

/** Collective over the group. For each rank, its gradients for this owner, by local row; absent when it sent none. */
export function sendLists(
  device: Device,
  group: Communicator,
  { own, rooms, table, only }: ListsToSend,
  stream: StreamName,
): (RowList | undefined)[] {
  const { size, rank } = group;
  const { width } = table;
  const here = { vocabulary: ownedRows(table.vocabulary, { index: rank, count: size }), width };
  using ones = device.from(new BigInt64Array(size).fill(1n), [1, size], { stream });
  using received = device.tensor([1, size], 'i64');
  const list = own ?? emptyList(device, width, stream);
  const all = routeIds(device, list.ids, { owners: size, order: 'from-routed', stream });
  const routed = only ? keepRouted(device, all, only, stream) : all;
  const { local, order, counts } = routed;
  group.allToAllV(device, { send: counts, sendCounts: ones, receive: received, receiveCounts: ones, unit: 1 });
  const room = rooms.reduce<number>((sum, most = 0) => sum + Math.min(most, here.vocabulary), 0);
  const parts = emptyRowList(device, Math.max(1, room), { vocabulary: Number.MAX_SAFE_INTEGER, width });
  const both = { sendCounts: counts, receiveCounts: received };
  group.allToAllV(device, { send: local, receive: parts.ids, ...both, unit: 1 });
  using rows = device.tensor([list.ids.size, width]);
  pickRows(device, { from: list.rows, ids: order, to: rows }, stream);
  group.allToAllV(device, { send: rows, receive: parts.rows, ...both, unit: width });
  const lists = rooms.map((most, index) => {
    if (most === undefined) return undefined;
    const to = emptyRowList(device, most, here);
    takeList(device, { list: parts, counts: received, index, to }, stream);
    return to;
  });
  for (const tensor of new Set([...Object.values(all), ...Object.values(routed)])) tensor.dispose();
  if (!own || !only?.inside) disposeRowList(list);
  disposeRowList(parts);
  return lists;
}

function emptyList(device: Device, width: number, stream: StreamName): RowList {
  return { ids: device.from(Int32Array.of(-1), [1, 1], { stream }), rows: device.tensor([1, width]) };
}
