// Extends a store's feature tables by new ids: labels keep their numbers and new ones are appended; missing values are taken
// from the newer store if it has them.

import { join } from 'node:path';
import { SafetensorsFile, writeSafetensors } from '../../util/safetensors.js';
import { fileEntry } from '../store/file-entry.js';
import type { SequenceStore } from '../store/sequence-store.js';
import type { FeatureEntry } from '../store/store-index.js';
import type { MergedIds } from './merge-vocabulary.js';

type FeatureColumn = FeatureEntry['columns'][number];

export interface FeatureMerge {
  readonly base: SequenceStore;
  readonly newer: SequenceStore;
  readonly users: MergedIds;
  readonly items: MergedIds;
}

export function mergeFeatures(folder: string, { base, newer, users, items }: FeatureMerge): FeatureEntry[] {
  return base.index.features.map(table => {
    const ids = table.of === 'user' ? users : items;
    const columns = table.columns.map(column => {
      const labels = [...column.labels];
      const data = extended(base, table, column, ids);
      for (const other of newer.index.features.filter(({ of }) => of === table.of)) {
        const same = other.columns.find(({ name, dtype }) => name === column.name && dtype === column.dtype);
        if (same) fill(data, { labels, ids, of: readColumn(newer, other, same), ownLabels: same.labels });
      }
      return { column: { ...column, labels }, data };
    });
    const tensors = columns.map(({ column, data }) => [
      column.name,
      { dtype: column.dtype, shape: [data.length], data },
    ]);
    writeSafetensors(join(folder, table.file), Object.fromEntries(tensors));
    return { ...table, ...fileEntry(folder, table.file), columns: columns.map(({ column }) => column) };
  });
}

type Values = Int32Array | Float32Array;

function readColumn(store: SequenceStore, { file: name }: FeatureEntry, column: FeatureColumn): Values {
  const file = new SafetensorsFile(join(store.folder, name));
  try {
    return column.dtype === 'I32' ? file.read(column.name, 'I32') : file.read(column.name, 'F32');
  } finally {
    file.close();
  }
}

/** The base's values, then -1 or NaN for the new ids. */
function extended(store: SequenceStore, table: FeatureEntry, column: FeatureColumn, ids: MergedIds): Values {
  const known = readColumn(store, table, column);
  const all = known instanceof Int32Array ? new Int32Array(ids.size).fill(-1) : new Float32Array(ids.size).fill(NaN);
  all.set(known);
  return all;
}

/** Fills missing values from the newer store; new labels are appended to `labels`. */
function fill(
  data: Values,
  { labels, ids, of, ownLabels }: { labels: string[]; ids: MergedIds; of: Values; ownLabels: readonly string[] },
): void {
  const numbers = new Map(labels.map((label, number) => [label, number]));
  of.forEach((value, newer) => {
    const id = ids.ofNewer[newer]!;
    const missing = data instanceof Int32Array ? data[id] === -1 : Number.isNaN(data[id]);
    if (!missing) return;
    if (data instanceof Float32Array) {
      data[id] = value;
    } else if (value >= 0) {
      const label = ownLabels[value]!;
      const number = numbers.get(label) ?? labels.push(label) - 1;
      numbers.set(label, number);
      data[id] = number;
    }
  });
}
