// Mean rows of known items by feature label: initial values for items without events.
//
// V rows of the item table, D width.

import { join } from 'node:path';
import type { SequenceStore } from '../data/store/sequence-store.js';
import { SafetensorsFile } from '../util/safetensors.js';

export interface LabelMeansInput {
  d: number;
  source: SequenceStore;
  /** Whether an item's row counts. */
  known: (item: number) => boolean;
}

export class LabelMeans {
  readonly #d: number;
  readonly #columns: { labels: Int32Array; sums: Float64Array; counts: Int32Array }[] = [];

  constructor(rows: Float32Array, { d, known, source }: LabelMeansInput) {
    this.#d = d;
    for (const table of source.index.features.filter(({ of }) => of === 'item')) {
      const file = new SafetensorsFile(join(source.folder, table.file));
      for (const { name } of table.columns.filter(({ dtype }) => dtype === 'I32')) {
        const labels = file.read(name, 'I32');
        const size = labels.reduce((most, label) => Math.max(most, label), -1) + 1;
        const column = { labels, sums: new Float64Array(size * d), counts: new Int32Array(size) };
        for (let item = 0; item < source.items; item++) {
          const label = labels[item] ?? -1;
          if (label < 0 || !known(item)) continue;
          column.counts[label]!++;
          addRow(column.sums, label * d, rows.subarray(item * d, (item + 1) * d));
        }
        this.#columns.push(column);
      }
      file.close();
    }
  }

  /** Over the columns in which the item has a label that a known item has too. */
  mean(item: number): Float32Array | undefined {
    const d = this.#d;
    const sum = new Float64Array(d);
    let found = 0;
    for (const { labels, sums, counts } of this.#columns) {
      const label = labels[item] ?? -1;
      if (label < 0 || counts[label] === 0) continue;
      found++;
      for (let i = 0; i < d; i++) sum[i]! += sums[label * d + i]! / counts[label]!;
    }
    return found === 0 ? undefined : Float32Array.from(sum, x => x / found);
  }
}

export function addRow(sums: Float64Array, at: number, row: Float32Array): void {
  for (let i = 0; i < row.length; i++) sums[at + i]! += row[i]!;
}
