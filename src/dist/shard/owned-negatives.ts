// Fetches one segment of negatives from the owners of their rows: distinct ids are sent, and rows come back with their
// factors, in the form that the loss reads. Rows are sent from buffers that are reused: work is enqueued far ahead, so that
// buffers of all segments would be allocated at once.
//
// Collective over the group: a rank without a segment only answers.
//
// N draws of the segment, D width.

import type { StreamName } from '../../native/call.js';
import { pickNegatives, type RowBuffer } from '../../ops/fetch-negatives.js';
import { routeIds } from '../../ops/route-ids.js';
import { uniqueIds } from '../../ops/staged-rows.js';
import type { Tensor } from '../../tensor/tensor.js';
import { exchangeIds, type RowOwners } from './row-requests.js';

export interface DrawnRows {
  readonly ids: Tensor<'i32'>; // [1, N]
  /** Has capacity for the distinct rows. */
  readonly into: RowBuffer;
  /** Output: the index of each draw's row. */
  readonly places: Tensor<'i32'>; // [1, N]
}

export interface OwnedFetch {
  /** Absent for a rank that only answers. */
  drawn: DrawnRows | undefined;
  /** For each rank of the group, the most ids it requests. */
  rooms: readonly number[];
  /** A buffer with capacity for this many rows, from which they are sent. */
  answers: (rows: number) => RowBuffer;
  normalizedEps: number | undefined;
  stream: StreamName;
}

export function fetchOwned(
  owners: RowOwners,
  { drawn, rooms, answers: buffer, normalizedEps, stream }: OwnedFetch,
): void {
  const { device, table, group } = owners;
  const width = table.value.cols;
  const distinct = drawn
    ? uniqueIds(device, { of: [drawn.ids], into: [drawn.places] }, table.vocabulary, stream).ids
    : device.from(Int32Array.of(-1), [1, 1], { stream });
  const places = drawn && { places: drawn.places };
  const route = routeIds(device, distinct, { owners: group.size, order: 'to-routed', ...places, stream });
  const requests = exchangeIds(owners, route, rooms, stream);
  const answers = buffer(requests.ids.size);
  pickNegatives(device, { from: table.value, ...requests, normalizedEps, to: answers }, stream);
  const nothing = { rows: device.tensor([1, width], answers.rows.dtype), factors: device.tensor([1, 1]) };
  const into = drawn?.into ?? nothing;
  const counts = { sendCounts: requests.counts, receiveCounts: route.counts };
  group.allToAllV(device, { send: answers.rows, receive: into.rows, ...counts, unit: width });
  group.allToAllV(device, { send: answers.factors, receive: into.factors, ...counts, unit: 1 });
  for (const tensor of [distinct, ...Object.values({ ...route, ...nothing }), ...Object.values(requests)])
    tensor.dispose();
}
