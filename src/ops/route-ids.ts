// Routing for sharded tables: ids sorted by owner, rows copied by index, lists received in parts. Row `id` belongs to owner
// `id mod n`, as its local row `id div n` (util/row-shard.ts).
//
// U capacity of a list, n owners, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowShard } from '../util/row-shard.js';
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
  /** With 'to-routed': indices of ids, or -1, which become those in `local`. */
  places?: Tensor<'i32'>;
  stream?: StreamName | undefined;
}

/** Ascending ids by owner. The caller owns the tensors. */
export function routeIds(device: Device, ids: Tensor<'i32'>, options: RouteOptions): RoutedIds {
  const { owners, order, places, stream } = options;
  const routed = {
    local: device.tensor([1, ids.size], 'i32'),
    order: device.tensor([1, ids.size], 'i32'),
    counts: device.tensor([1, owners], 'i64'),
  };
  const call = device
    .call('route_ids')
    .tensor(ids)
    .flag(order === 'to-routed');
  call.tensor(routed.local).tensor(routed.order).tensor(routed.counts).tensor(places).submit(stream);
  return routed;
}

/** The ids that this owner has, as its local rows, and -1 for others. The caller owns them. */
export function localIds(device: Device, ids: Tensor<'i32'>, shard: RowShard, stream?: StreamName): Tensor<'i32'> {
  const to = device.tensor(ids.shape, 'i32');
  device.call('local_ids').tensor(ids).number(shard.index).number(shard.count).tensor(to).submit(stream);
  return to;
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

export interface AgreedRows {
  /** What may have the rows. */
  from: RowList;
  /** Ascending ids, padded with -1. */
  agreed: Tensor<'i32'>;
  /** Indices of `agreed`, in parts. */
  order: Tensor<'i32'>;
  counts: Tensor<'i64'>;
  to: Tensor<'f32'>;
}

/** to[k] = the row of id agreed[order[k]], or a row marked as absent, which `takeList` leaves out. */
export function pickAgreed(device: Device, { from, agreed, order, counts, to }: AgreedRows, stream?: StreamName): void {
  const call = device.call('pick_agreed').tensor(from.ids).tensor(from.rows);
  call.tensor(agreed).tensor(order).tensor(counts).tensor(to).submit(stream);
}

/** Extracts part `index` of a list that was received in parts, without absent rows. */
export function takeList(
  device: Device,
  { list, counts, index, to }: { list: RowList; counts: Tensor<'i64'>; index: number; to: RowList },
  stream?: StreamName,
): void {
  const call = device.call('take_list').tensor(list.ids).tensor(list.rows).tensor(counts).number(index);
  call.tensor(to.ids).tensor(to.rows).submit(stream);
}
