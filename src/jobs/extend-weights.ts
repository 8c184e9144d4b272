// Extends a run's weights to a larger catalogue: existing rows are unchanged. A new item starts as the mean of its neighbours,
// the known items directly before and after it in the histories; without any, as the mean of known items that share a feature
// label; otherwise as the mean of all. New rows of other tables start as the mean of the old ones.
//
// V rows of a table, D width.

import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { SequenceStore } from '../data/store/sequence-store.js';
import type { Model } from '../nn/model.js';
import { syncFolder, claimTemporary } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { WHOLE } from '../util/row-shard.js';
import { SafetensorsWriter, type TensorSpec } from '../util/safetensors.js';
import type { TensorFile } from '../util/tensor-file.js';
import { addRow, LabelMeans } from './label-means.js';

export interface ExtendedWeights {
  /** Numbers of new items initialised from neighbours, from features, and from the overall mean. */
  neighbours: number;
  features: number;
  neither: number;
}

export interface ExtendWeightsInput {
  /** The existing weights. */
  weights: TensorFile;
  /** Required names and shapes. */
  model: Pick<Model, 'all'>;
  source: SequenceStore;
  /** Items that have trained rows; ids from here on are new. */
  known: number;
  out: string;
}

export function extendWeights({ weights, model, source, known, out }: ExtendWeightsInput): ExtendedWeights {
  const temp = claimTemporary(out);
  const specs = model.all.map(({ name, value }): [string, TensorSpec] => [name, { dtype: 'F32', shape: value.shape }]);
  const report = { neighbours: 0, features: 0, neither: 0 };
  const writer = new SafetensorsWriter(temp, Object.fromEntries(specs), { format: 'turbogr-weights' });
  try {
    for (const { name, value } of model.all) {
      const d = value.cols;
      const before = readRows(weights, name, d);
      const kept = name === 'items' ? known * d : Math.min(before.length, value.size);
      if (before.length < kept || (before.length !== value.size && !isTable(name))) throw mismatch(weights, name);
      const rows = new Float32Array(value.size);
      rows.set(before.subarray(0, kept));
      if (name === 'items') Object.assign(report, startItems(rows, { d, known, source }));
      else rows.subarray(kept).set(repeated(meanRow(before, d), rows.length - kept));
      writer.append(name, rows);
    }
    writer.close();
    renameSync(temp, out);
  } catch (error) {
    rmSync(temp, { force: true });
    throw error;
  }
  syncFolder(dirname(out));
  return report;
}

/** Tables have one row per id and may grow; other shapes are fixed by the architecture. */
function isTable(name: string): boolean {
  return name === 'items' || name === 'actions' || name.startsWith('features.');
}

function readRows(weights: TensorFile, name: string, d: number): Float32Array {
  const shape = weights.tensors.get(name)?.shape;
  if (shape?.[1] !== d) throw mismatch(weights, name);
  const rows = new Float32Array(shape[0]! * d);
  weights.readRows(name, WHOLE, 0, rows);
  return rows;
}

function mismatch(weights: TensorFile, name: string): UserError {
  const message = `${weights.path}: "${name}" does not fit the model of the update`;
  return new UserError(
    'weights-mismatch',
    message,
    'Leave the keys of model as they are: an update keeps the architecture.',
  );
}

/** Fills the rows of the items from `known` on. */
function startItems(
  rows: Float32Array,
  { d, known, source }: { d: number; known: number; source: SequenceStore },
): ExtendedWeights {
  const sums = new RowSums(rows, { d, known });
  for (let user = 0; user < source.users; user++) {
    const item = new Int32Array(source.lengths[user]!);
    source.read(user, 0, item.length, { item }, 0);
    for (let i = 1; i < item.length; i++) {
      sums.add(item[i]!, item[i - 1]!);
      sums.add(item[i - 1]!, item[i]!);
    }
  }
  const labelled = new LabelMeans(rows, { d, source, known: item => item < known });
  const all = meanRow(rows.subarray(0, known * d), d);
  const report = { neighbours: 0, features: 0, neither: 0 };
  for (let item = known; item < rows.length / d; item++) {
    const neighbours = sums.mean(item);
    const start = neighbours ?? labelled.mean(item);
    rows.set(start ?? all, item * d);
    report[neighbours ? 'neighbours' : start ? 'features' : 'neither']++;
  }
  return report;
}

/** Sums of known rows for each new item. */
class RowSums {
  readonly #rows: Float32Array;
  readonly #size: { d: number; known: number };
  readonly #sums: Float64Array;
  readonly #counts: Int32Array;

  constructor(rows: Float32Array, size: { d: number; known: number }) {
    this.#rows = rows;
    this.#size = size;
    this.#sums = new Float64Array(rows.length - size.known * size.d);
    this.#counts = new Int32Array(this.#sums.length / size.d);
  }

  /** Counts `neighbour` for `item` if the one is known and the other new. */
  add(item: number, neighbour: number): void {
    const { d, known } = this.#size;
    if (item < known || neighbour >= known) return;
    this.#counts[item - known]!++;
    addRow(this.#sums, (item - known) * d, this.#rows.subarray(neighbour * d, (neighbour + 1) * d));
  }

  mean(item: number): Float32Array | undefined {
    const { d, known } = this.#size;
    const count = this.#counts[item - known]!;
    if (count === 0) return undefined;
    return Float32Array.from(this.#sums.subarray((item - known) * d, (item - known + 1) * d), x => x / count);
  }
}

function meanRow(rows: Float32Array, d: number): Float32Array {
  const sum = new Float64Array(d);
  for (let at = 0; at < rows.length; at += d) addRow(sum, 0, rows.subarray(at, at + d));
  return Float32Array.from(sum, x => x / Math.max(1, rows.length / d));
}

function repeated(row: Float32Array, length: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => row[i % row.length]!);
}
