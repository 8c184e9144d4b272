// A source of named tensors: a safetensors file, or one whose tables are in separate shard files.

import type { RowShard } from './row-shard.js';

export interface TensorFile {
  readonly path: string;
  /** As whole tensors. */
  readonly tensors: ReadonlyMap<string, { readonly dtype: string; readonly shape: readonly number[] }>;
  /** Fills `into` with elements of a shard of an F32 matrix (its rows, concatenated), from `start` on. */
  readRows(name: string, shard: RowShard, start: number, into: Float32Array<ArrayBuffer>): void;
  close(): void;
}

/** Reads elements of a source from `start` on. */
export type ReadElements = (start: number, into: Float32Array<ArrayBuffer>) => void;

/** Collects the rows of one shard from differently sharded sources: source s of n has rows s, s + n, s + 2 n, ... */
export function reshardRows(
  sources: readonly ReadElements[],
  cols: number,
  want: RowShard,
  { start, into }: { start: number; into: Float32Array<ArrayBuffer> },
): void {
  const [first, count] = [start / cols, into.length / cols];
  if (count === 0) return;
  const of = sources.length;
  const id = (row: number): number => row * want.count + want.index;
  sources.forEach((read, source) => {
    const from = Math.max(0, Math.ceil((id(first) - source) / of));
    const to = Math.floor((id(first + count - 1) - source) / of) + 1;
    if (to <= from) return;
    const block = new Float32Array((to - from) * cols);
    read(from * cols, block);
    for (let row = from; row < to; row++) {
      const own = (row * of + source - want.index) / want.count;
      if (!Number.isInteger(own)) continue;
      const at = (row - from) * cols;
      into.set(block.subarray(at, at + cols), (own - first) * cols);
    }
  });
}
