// Writes a vocabulary file (see vocabulary.ts) from a stream of values in dense order, and hashes the values on the way.

import { type Hash, createHash } from 'node:crypto';
import { join } from 'node:path';
import { sha256File } from '../../util/hash.js';
import { SafetensorsWriter } from '../../util/safetensors.js';
import type { VocabularyEntry } from './store-index.js';

export interface VocabularyShape {
  readonly file: string;
  readonly kind: 'integer' | 'text';
  readonly order: VocabularyEntry['order'];
  readonly size: number;
  /** UTF-8 bytes of all values; 0 for integers. */
  readonly textBytes: number;
}

export class VocabularyWriter {
  readonly size: number;
  private readonly folder: string;
  private readonly shape: VocabularyShape;
  private readonly writer: SafetensorsWriter;
  private readonly hash: Hash;
  private textEnd = 0;

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
    this.hash = createHash('sha256').update(`${shape.kind} ${size}\n`);
  }

  /** The next values in dense order: integers. */
  addIntegers(values: BigInt64Array, counts: BigInt64Array): void {
    this.writer.append('value', values);
    this.writer.append('count', counts);
    this.hash.update(values);
  }

  /** The next values in dense order: text. */
  addTexts(values: readonly string[], counts: BigInt64Array): void {
    const ends = new BigInt64Array(values.length);
    const pieces = values.map((value, i) => {
      const bytes = Buffer.from(value);
      ends[i] = BigInt((this.textEnd += bytes.length));
      return bytes;
    });
    const bytes = Buffer.concat(pieces);
    this.writer.append('bytes', bytes);
    this.writer.append('offsets', ends);
    this.writer.append('count', counts);
    this.hash.update(ends).update(bytes);
  }

  /** The next dense ids in ascending order of their values. */
  addOrder(dense: Int32Array): void {
    this.writer.append('by_value', dense);
  }

  /** The index entry, and the SHA-256 of the values in dense order. */
  finish(): { entry: VocabularyEntry; content: string } {
    this.writer.close();
    const { file, kind, size, order } = this.shape;
    return {
      entry: { file, kind, size, order, sha256: sha256File(join(this.folder, file)) },
      content: this.hash.digest('hex'),
    };
  }
}
