// Rows of a divided table on their way between owners and users: ids sorted by owner, rows copied by place, lists that come
// in parts. Row `id` belongs to owner `id mod n` and is row `id div n` there (util/row-shard.ts).
//
// U places of a list, n owners, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowList } from './row-list.js';
import type { RowDtype } from './row-source.js';

export interface RoutedIds {
  /** Rows at their owners, one owner after the other; -1 beyond the last. */
  readonly local: Tensor<'i32'>; // [U]
  /** See `routeIds`. */
  readonly order: Tensor<'i32'>; // [U]
  /** How many each owner gets. */
  readonly counts: Tensor<'i64'>; // [n]
}

export interface RouteOptions {
  owners: number;
  /** What `order` holds: for each id its place in `local`, or for each place in `local` the id's own. */
  order: 'to-routed' | 'from-routed';
  stream?: StreamName | undefined;
}

/** Ascending ids by owner. The caller owns the tensors. */
export function routeIds(device: Device, ids: Tensor<'i32'>, { owners, order, stream }: RouteOptions): RoutedIds {
  const routed = {
    local: device.tensor([1, ids.size], 'i32'),
    order: device.tensor([1, ids.size], 'i32'),
    counts: device.tensor([1, owners], 'i64'),
  };
  const call = device
    .call('route_ids')
    .tensor(ids)
    .flag(order === 'to-routed');
  call.tensor(routed.local).tensor(routed.order).tensor(routed.counts).submit(stream);
  return routed;
}

export interface RowCopy<D extends RowDtype> {
  from: Tensor<RowDtype>;
  /** In any order. */
  ids: Tensor<'i32'>;
  /** How many ids there are, in parts; absent, they end in -1. */
  counts?: Tensor<'i64'>;
  /** Has room for all of them. */
  to: Tensor<D>;
}

/** to[k] = from[ids[k]]; rows beyond the last id are left as they are. */
export function pickRows<D extends RowDtype>(
  device: Device,
  { from, ids, counts, to }: RowCopy<D>,
  stream?: StreamName,
): Tensor<D> {
  device.call('pick_rows').tensor(from).tensor(ids).tensor(counts).tensor(to).submit(stream);
  return to;
}

/** Writes part `index` of a list that came in parts as a list of its own. */
export function takeList(
  device: Device,
  { list, counts, index, to }: { list: RowList; counts: Tensor<'i64'>; index: number; to: RowList },
  stream?: StreamName,
): void {
  const call = device.call('take_list').tensor(list.ids).tensor(list.rows).tensor(counts).number(index);
  call.tensor(to.ids).tensor(to.rows).submit(stream);
}
