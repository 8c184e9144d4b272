// Sums contributions to a row source by row into a list, in token order, with the same bits as embeddingUpdate. Gradients of
// normalised rows are computed from the values that were read. Contributions of several lanes are summed per lane and then
// over the lane tree (train/lane-tree.ts), as if each lane had a separate list.
//
// V rows of the table, D width.

import type { Call, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Contribution, RowSource } from './row-source.js';
import { emptyRowList, type RowList } from './row-list.js';

/** Maximum contributions per call: the kernel's limit. */
export const MOST_CONTRIBUTIONS = 24;

/** Tables of up to this many elements count as small: the kernel sums them lane by lane. */
const SMALL_TABLE = 2 ** 18;

export function isSmallTable(rows: number, width: number): boolean {
  return rows * Math.ceil(width / 8) * 8 <= SMALL_TABLE;
}

export function writeContributions(call: Call, contributions: readonly Contribution[]): Call {
  call.number(contributions.length);
  for (const { source, members = 1, ids, coef, scale, lane, normalizedEps, rounded } of contributions) {
    call
      .tensor(source)
      .number(members)
      .number(lane ?? 0)
      .tensor(ids)
      .tensor(coef)
      .number(scale)
      .number(normalizedEps ?? 0)
      .flag(rounded ?? false);
  }
  return call;
}

/** The caller owns the list. */
export function embeddingReduce(
  device: Device,
  source: RowSource,
  contributions: readonly Contribution[],
  stream?: StreamName,
): RowList {
  const { value, ids } = source;
  const vocabulary = ids ? source.vocabulary : value.rows; // a shard has fewer rows than its table
  const entries = contributions.reduce((sum, contribution) => sum + contribution.ids.size, 0);
  const to = emptyRowList(device, entries, { vocabulary, width: value.cols });
  const call = device.call('embedding_reduce').tensor(value).tensor(ids).number(vocabulary);
  writeContributions(call, contributions).tensor(to.ids).tensor(to.rows).submit(stream);
  return to;
}
