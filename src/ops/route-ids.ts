// Routing for sharded tables: ids sorted by owner, rows copied by index, lists received in parts. Row `id` belongs to owner
// `id mod n`, as its local row `id div n` (util/row-shard.ts).
//
// U capacity of a list, n owners, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowList } from './row-list.js';
import type { RowDtype } from './row-source.js';

export interface RoutedIds {
  /** Local rows, grouped by owner; padded with -1. */
  readonly local: Tensor<'i32'>; // [U]
  /** See `routeIds`. */
  readonly order: Tensor<'i32'>; // [U]
  /** Number of ids per owner. */
  readonly counts: Tensor<'i64'>; // [n]
}

export interface RouteOptions {
  owners: number;
  /** What `order` maps: ids to positions in `local`, or positions in `local` to ids. */
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
  /** Numbers of ids, in parts; if absent, the ids end in -1. */
  counts?: Tensor<'i64'>;
  /** Has capacity for all of them. */
  to: Tensor<D>;
}

/** to[k] = from[ids[k]]; rows beyond the last id are unchanged. */
export function pickRows<D extends RowDtype>(
  device: Device,
  { from, ids, counts, to }: RowCopy<D>,
  stream?: StreamName,
): Tensor<D> {
  device.call('pick_rows').tensor(from).tensor(ids).tensor(counts).tensor(to).submit(stream);
  return to;
}

/** Extracts part `index` of a list that was received in parts. */
export function takeList(
  device: Device,
  { list, counts, index, to }: { list: RowList; counts: Tensor<'i64'>; index: number; to: RowList },
  stream?: StreamName,
): void {
  const call = device.call('take_list').tensor(list.ids).tensor(list.rows).tensor(counts).number(index);
  call.tensor(to.ids).tensor(to.rows).submit(stream);
}
