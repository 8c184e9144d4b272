// The last touch to a written shard: items that were written as places in a range become dense ids, in place, and the
// checksum is taken.

import { closeSync, fsyncSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeFully } from '../../util/atomic-file.js';
import { sha256 } from '../../util/hash.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import type { ShardPlan } from './shard-writer.js';
import type { ShardEntry } from './store-index.js';

export interface SealTask {
  readonly kind: 'seal';
  readonly folder: string;
  readonly shard: ShardPlan;
  /** Dense id of each place; not given when the items are dense ids already. */
  readonly dense: Int32Array | undefined;
}

export function sealShard({ folder, shard, dense }: SealTask): ShardEntry {
  const path = join(folder, shard.file);
  const content = readFileSync(path);
  if (dense) mapItems(path, content, dense);
  const { file, firstUser, users, events } = shard;
  return { file, sha256: sha256(content), firstUser, users, events };
}

function mapItems(path: string, content: Buffer, dense: Int32Array): void {
  const file = new SafetensorsFile(path);
  const { offset, bytes } = file.place('item', 'I32');
  file.close();
  const items = new Int32Array(content.buffer, content.byteOffset + offset, bytes / Int32Array.BYTES_PER_ELEMENT);
  for (let i = 0; i < items.length; i++) items[i] = dense[items[i] ?? -1] ?? -1;
  const fd = openSync(path, 'r+');
  try {
    writeFully(fd, content.subarray(offset, offset + bytes), offset);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
