// Gathers columns of numbers, with one message per rank.

import type { Communicator } from './communicator.js';

export type Column = Int32Array | Float32Array | Float64Array | BigInt64Array;
export type Columns = Readonly<Record<string, Column>>;

/** Alignment of columns in a message, in bytes. */
const ALIGNMENT = 8;

/** Every rank's columns, in the order of the ranks. Collective: all give the same names and kinds of columns. */
export async function gatherColumns<T extends Columns>(ranks: Communicator, own: T): Promise<T[]> {
  if (ranks.size === 1) return [own];
  const parts = await ranks.gather(encode(Object.values(own)));
  return parts.map(part => decode(own, part.slice().buffer));
}

/** The columns of all ranks, concatenated by rank. */
export async function joinColumns<T extends Columns>(ranks: Communicator, own: T): Promise<T> {
  if (ranks.size === 1) return own;
  const parts = await gatherColumns(ranks, own);
  const joined = Object.entries(own).map(([name, like]) => {
    const all: Column = make(
      like,
      parts.reduce((sum, part) => sum + part[name]!.length, 0),
    );
    let at = 0;
    for (const part of parts) {
      put(all, part[name]!, at);
      at += part[name]!.length;
    }
    return [name, all];
  });
  const result: T = Object.fromEntries(joined);
  return result;
}

/** Lengths, then the columns. */
function encode(columns: readonly Column[]): Uint8Array {
  const lengths = Float64Array.from(columns, ({ length }) => length);
  const all = [lengths, ...columns];
  const bytes = new Uint8Array(all.reduce((sum, column) => sum + padded(column), 0));
  let at = 0;
  for (const column of all) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at);
    at += padded(column);
  }
  return bytes;
}

function decode<T extends Columns>(like: T, buffer: ArrayBuffer): T {
  const kinds = Object.entries(like);
  const lengths = new Float64Array(buffer, 0, kinds.length);
  let at = lengths.byteLength;
  const columns = kinds.map(([name, kind], i) => {
    const column: Column = Reflect.construct(kind.constructor, [buffer, at, lengths[i]]);
    at += padded(column);
    return [name, column];
  });
  const decoded: T = Object.fromEntries(columns);
  return decoded;
}

function padded({ byteLength }: Column): number {
  return Math.ceil(byteLength / ALIGNMENT) * ALIGNMENT;
}

function make<C extends Column>(like: C, length: number): C {
  const made: C = Reflect.construct(like.constructor, [length]);
  return made;
}

function put(to: Column, from: Column, at: number): void {
  if (to instanceof BigInt64Array) {
    if (from instanceof BigInt64Array) to.set(from, at);
  } else if (!(from instanceof BigInt64Array)) to.set(from, at);
}
