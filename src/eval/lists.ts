// Concatenated lists of ids, one per case.

import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowShard } from '../util/row-shard.js';

export interface Lists {
  readonly ids: Int32Array;
  /** [C + 1] list c is ids[offsets[c]] .. ids[offsets[c + 1] - 1]. */
  readonly offsets: Int32Array;
}

export function listsOf(lists: readonly Iterable<number>[]): Lists {
  const parts = lists.map(list => Int32Array.from(list));
  const offsets = new Int32Array(lists.length + 1);
  parts.forEach(({ length }, c) => (offsets[c + 1] = offsets[c]! + length));
  return { ids: joined(parts), offsets };
}

export function emptyLists(count: number): Lists {
  return { ids: new Int32Array(0), offsets: new Int32Array(count + 1) };
}

export function listAt({ ids, offsets }: Lists, c: number): Int32Array {
  return ids.subarray(offsets[c], offsets[c + 1]);
}

/** The lists of several ranks, concatenated by rank. */
export function concatLists(parts: readonly Lists[]): Lists {
  if (parts.length === 1) return parts[0]!;
  const cases = parts.reduce((sum, { offsets }) => sum + offsets.length - 1, 0);
  const offsets = new Int32Array(cases + 1);
  let [at, c] = [0, 0];
  for (const part of parts) {
    for (const end of part.offsets.subarray(1)) offsets[++c] = at + end;
    at += part.ids.length;
  }
  return { ids: joined(parts.map(({ ids }) => ids)), offsets };
}

/** The ids that belong to a shard, as local rows. */
export function ownLists(lists: Lists, { index, count }: RowShard): Lists {
  if (count === 1) return lists;
  const rows: number[] = [];
  const offsets = new Int32Array(lists.offsets.length);
  for (let c = 0; c + 1 < offsets.length; c++) {
    for (const id of listAt(lists, c)) if (id % count === index) rows.push((id - index) / count);
    offsets[c + 1] = rows.length;
  }
  return { ids: Int32Array.from(rows), offsets };
}

export function joined(parts: readonly Int32Array[]): Int32Array {
  const all = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Lists on the device. */
export class UploadedLists {
  readonly ids: Tensor<'i32'>;
  readonly offsets: Tensor<'i32'>;

  constructor(device: Device, { ids, offsets }: Lists) {
    this.ids = device.from(ids);
    this.offsets = device.from(offsets);
  }

  [Symbol.dispose](): void {
    this.ids.dispose();
    this.offsets.dispose();
  }
}
