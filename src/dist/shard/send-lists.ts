// Sends gradient rows to the owners of the rows: every rank of a group sends a list, or none, and receives its own rows of
// all lists.

import type { StreamName } from '../../native/call.js';
import type { Device } from '../../native/device.js';
import { keepRouted, type RowChoice } from '../../ops/read-again.js';
import { type RoutedIds, routeIds } from '../../ops/route-ids.js';
import type { RowList } from '../../ops/row-list.js';
import type { Tensor } from '../../tensor/tensor.js';
import { ownedRows } from '../../util/row-shard.js';
import type { Communicator } from '../comm/communicator.js';
import { SendPlan } from './send-plan.js';

export interface ListsToSend {
  /** This rank's list, by row of the whole table. */
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
  const vocabulary = ownedRows(table.vocabulary, { index: group.rank, count: group.size });
  const room = rooms.reduce<number>((sum, most = 0) => sum + Math.min(most, vocabulary), 0);
  const sent = routeTo(device, group, { ids: own?.ids, only }, stream);
  const plan = new SendPlan(device, group, { sent, room }, stream);
  const lists = plan.move({ own, rooms, table: { vocabulary, width: table.width } }, stream);
  plan.dispose();
  return lists;
}

/** The ids of a list, or some of them, by owner; none without a list. The caller owns them. */
export function routeTo(
  device: Device,
  group: Communicator,
  { ids, only }: { ids: Tensor<'i32'> | undefined; only?: RowChoice | undefined },
  stream: StreamName,
): RoutedIds {
  using none = ids ? undefined : device.from(Int32Array.of(-1), [1, 1], { stream });
  const all = routeIds(device, ids ?? none!, { owners: group.size, order: 'from-routed', stream });
  if (!only) return all;
  const kept = keepRouted(device, all, only, stream);
  for (const tensor of Object.values(all)) tensor.dispose();
  return kept;
}
