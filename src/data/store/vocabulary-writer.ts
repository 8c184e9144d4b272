// Writes a vocabulary file (see vocabulary.ts) from a stream of values in dense order, and hashes the values.

import { type Hash, createHash } from 'node:crypto';
import { join } from 'node:path';
import { SafetensorsWriter } from '../../util/safetensors.js';
import { fileEntry } from './file-entry.js';
import type { VocabularyEntry } from './store-index.js';

export interface VocabularyShape {
  readonly file: string;
  readonly kind: 'integer' | 'text';
  readonly order: VocabularyEntry['order'];
  readonly size: number;
  /** UTF-8 bytes of all values; 0 for integers. */
  readonly textBytes: number;
}

/** Text is hashed in blocks of this many values, independent of the input chunks: end offsets of a block, then its bytes. */
export const TEXT_BLOCK = 2048;

/** Hash of the values in dense order. */
export function vocabularyHash(kind: 'integer' | 'text', size: number): Hash {
  return createHash('sha256').update(`${kind} ${size}\n`);
}

export class VocabularyWriter {
  readonly size: number;
  private readonly folder: string;
  private readonly shape: VocabularyShape;
  private readonly writer: SafetensorsWriter;
  private readonly hash: Hash;
  private textEnd = 0;
  private block: Uint8Array[] = [];

  constructor(folder: string, shape: VocabularyShape) {
    this.folder = folder;
    this.shape = shape;
    const { size, textBytes } = shape;
    this.size = size;
    this.writer = new SafetensorsWriter(join(folder, shape.file), {
      count: { dtype: 'I64', shape: [size] },
      by_value: { dtype: 'I32', shape: [size] },
      ...(shape.kind === 'integer'
        ? { value: { dtype: 'I64', shape: [size] } }
        : { bytes: { dtype: 'U8', shape: [textBytes] }, offsets: { dtype: 'I64', shape: [size + 1] } }),
    });
    if (shape.kind === 'text') this.writer.append('offsets', BigInt64Array.of(0n));
    this.hash = vocabularyHash(shape.kind, size);
  }

  /** The next values in dense order: integers. */
  addIntegers(values: BigInt64Array, counts: BigInt64Array): void {
    this.writer.append('value', values);
    this.writer.append('count', counts);
    this.hash.update(values);
  }

  /** The next values in dense order: UTF-8 text. */
  addTexts(values: readonly Uint8Array[], counts: BigInt64Array): void {
    for (let from = 0; from < values.length; ) {
      const piece = values.slice(from, from + TEXT_BLOCK - this.block.length);
      this.block.push(...piece);
      if (this.block.length === TEXT_BLOCK) this.flushTexts();
      from += piece.length;
    }
    this.writer.append('count', counts);
  }

  private flushTexts(): void {
    const ends = BigInt64Array.from(this.block, text => BigInt((this.textEnd += text.length)));
    const bytes = Buffer.concat(this.block);
    this.writer.append('bytes', bytes);
    this.writer.append('offsets', ends);
    this.hash.update(ends).update(bytes);
    this.block = [];
  }

  /** The next dense ids in ascending order of their values. */
  addOrder(dense: Int32Array): void {
    this.writer.append('by_value', dense);
  }

  /** The index entry, and the SHA-256 of the values in dense order. */
  finish(): { entry: VocabularyEntry; content: string } {
    if (this.block.length > 0) this.flushTexts();
    this.writer.close();
    const { file, kind, size, order } = this.shape;
    return {
      entry: { ...fileEntry(this.folder, file), kind, size, order },
      content: this.hash.digest('hex'),
    };
  }
}
