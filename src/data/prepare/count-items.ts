// counts.safetensors: occurrences of each item in the training events, and in training and validation events. Needed for
// sampling, logQ correction and the popularity baseline, which would otherwise read the whole log before the first step.

import { join } from 'node:path';
import { SafetensorsFile, writeSafetensors } from '../../util/safetensors.js';
import type { Split } from '../sequence-source.js';
import { fileEntry } from '../store/file-entry.js';
import type { FileEntry, ShardEntry } from '../store/store-index.js';

const COUNTS_FILE = 'counts.safetensors';

export interface CountOptions {
  readonly folder: string;
  readonly shards: readonly ShardEntry[];
  readonly lengths: Int32Array;
  readonly split: Split;
  /** Size of the item vocabulary. */
  readonly items: number;
}

export function writeCounts({ folder, shards, lengths, split, items }: CountOptions): FileEntry {
  const train = new Int32Array(items);
  const validation = new Int32Array(items);
  for (const shard of shards) {
    const file = new SafetensorsFile(join(folder, shard.file));
    const item = file.read('item', 'I32');
    file.close();
    let start = 0;
    for (let u = shard.firstUser; u < shard.firstUser + shard.users; u++) {
      const trainEnd = start + (split.trainEnd[u] ?? 0);
      const validationEnd = start + (split.validationEnd[u] ?? 0);
      tally(item, start, trainEnd, train);
      tally(item, trainEnd, validationEnd, validation);
      start += lengths[u] ?? 0;
    }
  }
  const both = train.map((n, i) => n + (validation[i] ?? 0));
  writeSafetensors(join(folder, COUNTS_FILE), {
    train: { dtype: 'I32', shape: [items], data: train },
    train_validation: { dtype: 'I32', shape: [items], data: both },
  });
  return fileEntry(folder, COUNTS_FILE);
}

function tally(item: Int32Array, from: number, to: number, counts: Int32Array): void {
  for (let i = from; i < to; i++) {
    const id = item[i] ?? 0;
    counts[id] = (counts[id] ?? 0) + 1;
  }
}
