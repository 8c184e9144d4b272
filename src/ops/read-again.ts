// Rows that two consecutive steps read: the union of an owner's requests, and routed ids split by it.
//
// U capacity of a list, n owners.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { Requests } from './changed-rows.js';
import type { RoutedIds } from './route-ids.js';

/** The most requests per call, as in the kernel. */
export const MOST_REQUESTS = 40;

/** Requests, or those of some senders. */
export interface Asked extends Requests {
  /** The end is exclusive; default: all senders. */
  readonly senders?: readonly [from: number, to: number];
}

export interface AskedOptions {
  /** The most ids. */
  room: number;
  /** The fewest senders that request an id (default 1). */
  least?: number;
  stream?: StreamName;
}

/** The distinct ids of several requests, ascending, padded with -1. The caller owns the list. */
export function askedRows(
  device: Device,
  requests: readonly Asked[],
  { room, least = 1, stream }: AskedOptions,
): Tensor<'i32'> {
  const to = device.tensor([1, Math.max(1, room)], 'i32');
  const call = device.call('asked_rows').number(least).number(requests.length);
  for (const { ids, counts, senders = [0, counts.size] } of requests)
    call.tensor(ids).tensor(counts).number(senders[0]).number(senders[1]);
  call.tensor(to).submit(stream);
  return to;
}

export interface RowChoice {
  /** Local ids, grouped by owner. */
  marked: readonly Requests[];
  /** Selects the ids in any of `marked`, or those in none. */
  inside: boolean;
}

/** A subset of routed ids (`from-routed`). The caller owns the tensors. */
export function keepRouted(
  device: Device,
  { local, order, counts }: RoutedIds,
  { marked, inside }: RowChoice,
  stream?: StreamName,
): RoutedIds {
  const kept = {
    local: device.tensor(local.shape, 'i32'),
    order: device.tensor(order.shape, 'i32'),
    counts: device.tensor(counts.shape, 'i64'),
  };
  const call = device.call('keep_routed').tensor(local).tensor(order).tensor(counts).number(marked.length);
  for (const part of marked) call.tensor(part.ids).tensor(part.counts);
  call.flag(inside).tensor(kept.local).tensor(kept.order).tensor(kept.counts).submit(stream);
  return kept;
}
