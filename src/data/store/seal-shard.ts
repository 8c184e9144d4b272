// Finalises a written shard: converts items from offsets in a range to dense ids, in place, computes the checksum, and flushes
// the file to disk.

import { closeSync, fstatSync, fsyncSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { writeFully } from '../../util/atomic-file.js';
import { sha256 } from '../../util/hash.js';
import { SafetensorsFile, readFully } from '../../util/safetensors.js';
import type { ShardPlan } from './shard-writer.js';
import type { ShardEntry } from './store-index.js';

export interface SealTask {
  readonly kind: 'seal';
  readonly folder: string;
  readonly shard: ShardPlan;
  /** Dense id of each offset; absent if items are already dense ids. */
  readonly dense: Int32Array | undefined;
}

/** Buffer for a shard's content, reused for the next one. */
let memory = new ArrayBuffer(0);

export function sealShard({ folder, shard, dense }: SealTask): ShardEntry {
  const path = join(folder, shard.file);
  const fd = openSync(path, 'r+');
  try {
    const { size } = fstatSync(fd);
    if (memory.byteLength < size) memory = new ArrayBuffer(size);
    const content = new Uint8Array(memory, 0, size);
    readFully(fd, content, 0, path);
    if (dense) {
      const { offset, bytes } = itemPlace(path);
      const items = new Int32Array(memory, offset, bytes / Int32Array.BYTES_PER_ELEMENT);
      for (let i = 0; i < items.length; i++) items[i] = dense[items[i] ?? -1] ?? -1;
      writeFully(fd, content.subarray(offset, offset + bytes), offset);
    }
    fsyncSync(fd);
    const { file, firstUser, users, events } = shard;
    return { file, sha256: sha256(content), bytes: size, firstUser, users, events };
  } finally {
    closeSync(fd);
  }
}

function itemPlace(path: string): { offset: number; bytes: number } {
  const file = new SafetensorsFile(path);
  const place = file.place('item', 'I32');
  file.close();
  return place;
}
