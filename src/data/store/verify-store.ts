// Verifies a store's contents against its index: the checksum of every file, and the fingerprint, recomputed from ids, events
// and split. Reads in slices and yields between them, so that concurrent training is not slowed down.

import { createHash, type Hash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { type StoredDtype, SafetensorsFile } from '../../util/safetensors.js';
import { damagedStore } from './damaged-store.js';
import { splitFingerprint } from './split.js';
import type { Split } from '../sequence-source.js';
import { type StoreIndex, type VocabularyEntry, filesOf } from './store-index.js';
import { TEXT_BLOCK, vocabularyHash } from './vocabulary-writer.js';

/** Hashing this much takes about a millisecond. */
const SLICE_BYTES = 1 << 18;

export interface VerifiedStore {
  readonly folder: string;
  readonly index: StoreIndex;
  readonly lengths: Int32Array;
  readonly split: Split;
}

/** Rejects with the first error found, or with the signal's reason. */
export async function verifyStore(store: VerifiedStore, signal?: AbortSignal): Promise<void> {
  const { folder, index, lengths, split } = store;
  const reader = new SliceReader(folder, signal);
  for (const { file, sha256 } of filesOf(index)) {
    const actual = createHash('sha256');
    await reader.whole(file, actual);
    const found = actual.digest('hex');
    if (found !== sha256) {
      throw damagedStore(join(folder, file), `has checksum ${found}, its index says ${sha256}`);
    }
  }
  const content = [
    await vocabularyContent(reader, index.vocabulary.item),
    await vocabularyContent(reader, index.vocabulary.user),
    await eventContent(reader, index, 'item', 'I32'),
    ...(index.time.kind === 'order' ? [] : [await eventContent(reader, index, 'time', 'I64')]),
  ];
  const fingerprint = splitFingerprint({ split, lengths, items: index.items, content });
  if (fingerprint !== index.split.fingerprint) {
    throw damagedStore(folder, `holds events of fingerprint ${fingerprint}, its index says ${index.split.fingerprint}`);
  }
}

async function eventContent(
  reader: SliceReader,
  { shards }: StoreIndex,
  name: string,
  dtype: StoredDtype,
): Promise<string> {
  const hash = createHash('sha256');
  for (const { file } of shards) await reader.tensor(file, name, dtype, hash);
  return hash.digest('hex');
}

/** Hashes values like VocabularyWriter: text in blocks, the end offsets of a block before its bytes. */
async function vocabularyContent(reader: SliceReader, { file, kind, size }: VocabularyEntry): Promise<string> {
  const hash = vocabularyHash(kind, size);
  if (kind === 'integer') await reader.tensor(file, 'value', 'I64', hash);
  else await reader.texts(file, hash);
  return hash.digest('hex');
}

class SliceReader {
  private readonly folder: string;
  private readonly signal: AbortSignal | undefined;
  private readonly slice = Buffer.allocUnsafe(SLICE_BYTES);

  constructor(folder: string, signal: AbortSignal | undefined) {
    this.folder = folder;
    this.signal = signal;
  }

  async whole(name: string, hash: Hash): Promise<void> {
    await this.with(name, async (file, path) => {
      await this.range(file, path, { from: 0, to: (await file.stat()).size }, hash);
    });
  }

  async tensor(name: string, tensor: string, dtype: StoredDtype, hash: Hash): Promise<void> {
    await this.with(name, async (file, path) => {
      const { offset, bytes } = placeOf(path, tensor, dtype);
      await this.range(file, path, { from: offset, to: offset + bytes }, hash);
    });
  }

  async texts(name: string, hash: Hash): Promise<void> {
    await this.with(name, async (file, path) => {
      const offsets = placeOf(path, 'offsets', 'I64');
      const bytes = placeOf(path, 'bytes', 'U8');
      const size = offsets.bytes / 8 - 1;
      let begin = 0;
      for (let from = 0; from < size; from += TEXT_BLOCK) {
        const ends = Buffer.allocUnsafe(8 * Math.min(TEXT_BLOCK, size - from));
        await this.fill(file, path, ends, offsets.offset + 8 * (from + 1));
        hash.update(ends);
        const end = Number(ends.readBigInt64LE(ends.length - 8));
        if (end < begin || end > bytes.bytes) throw damagedStore(path, 'has offsets that do not ascend');
        await this.range(file, path, { from: bytes.offset + begin, to: bytes.offset + end }, hash);
        begin = end;
      }
    });
  }

  private async range(file: FileHandle, path: string, { from, to }: { from: number; to: number }, hash: Hash) {
    for (let at = from; at < to; at += SLICE_BYTES) {
      const piece = this.slice.subarray(0, Math.min(SLICE_BYTES, to - at));
      await this.fill(file, path, piece, at);
      hash.update(piece);
    }
  }

  private async fill(file: FileHandle, path: string, target: Buffer, position: number): Promise<void> {
    this.signal?.throwIfAborted();
    for (let done = 0; done < target.length; ) {
      const { bytesRead } = await file.read(target, done, target.length - done, position + done);
      if (bytesRead === 0) throw damagedStore(path, `ends at byte ${position + done}`);
      done += bytesRead;
    }
  }

  private async with(name: string, work: (file: FileHandle, path: string) => Promise<void>): Promise<void> {
    const path = join(this.folder, name);
    const file = await open(path, 'r').catch((error: unknown) => {
      throw damagedStore(path, `cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    });
    try {
      await work(file, path);
    } finally {
      await file.close();
    }
  }
}

function placeOf(path: string, tensor: string, dtype: StoredDtype): { offset: number; bytes: number } {
  const file = new SafetensorsFile(path);
  try {
    return file.place(tensor, dtype);
  } finally {
    file.close();
  }
}
