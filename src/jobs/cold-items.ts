// Weights for answering requests: an item without events, known only from an items file, gets the mean row of the items that
// share its labels, since its own row was never trained. Evaluation uses the weights as trained.

import type { SequenceStore } from '../data/store/sequence-store.js';
import { type RowShard, WHOLE } from '../util/row-shard.js';
import type { TensorFile } from '../util/tensor-file.js';
import { LabelMeans } from './label-means.js';

/** `weights` with rows for cold items; unchanged if none shares a label with others. */
export function withColdItems(weights: TensorFile, source: SequenceStore): TensorFile {
  const cold = coldItems(source);
  const [, d] = weights.tensors.get('items')?.shape ?? [];
  if (cold.length === 0 || d === undefined) return weights;
  const rows = new Float32Array(source.items * d);
  weights.readRows('items', WHOLE, 0, rows);
  const unknown = new Set(cold);
  const means = new LabelMeans(rows, { d, source, known: item => !unknown.has(item) });
  const started = new Map(
    cold.flatMap(item => {
      const row = means.mean(item);
      return row ? [[item, row] as const] : [];
    }),
  );
  return {
    path: weights.path,
    tensors: weights.tensors,
    readRows(name, shard, start, into) {
      weights.readRows(name, shard, start, into);
      if (name === 'items') for (const [item, row] of started) put(row, placeIn(shard, item) * d - start, into);
    },
    close: () => weights.close(),
  };
}

function coldItems(source: SequenceStore): number[] {
  const labelled = source.index.features.some(
    ({ of, columns }) => of === 'item' && columns.some(({ dtype }) => dtype === 'I32'),
  );
  if (!labelled) return [];
  const { itemVocabulary } = source;
  return Array.from({ length: source.items }, (_, item) => item).filter(item => itemVocabulary.count(item) === 0);
}

/** Number of the item's row in its shard; NaN in the others. */
function placeIn({ index, count }: RowShard, item: number): number {
  return item % count === index ? (item - index) / count : Number.NaN;
}

/** The part of a row that overlaps `into` if it begins at `at`, which may be outside. */
function put(row: Float32Array, at: number, into: Float32Array): void {
  for (let i = Math.max(0, -at); i < row.length && at + i < into.length; i++) into[at + i] = row[i]!;
}
