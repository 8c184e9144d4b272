// Maps ids of the log to dense ids 0..size-1 and back. Externally ids are text, whatever their type was, so that '007' and 7
// differ exactly if the log's column was text.
// On disk, integers: `value` i64 [V]; text: UTF-8 `bytes` cut by `offsets` i64 [V+1]; both: `count` i64 [V], and
// `by_value` i32 [V], the dense ids in ascending order of the original (text by its UTF-8 bytes).

import { join } from 'node:path';
import { SafetensorsFile } from '../../util/safetensors.js';
import { damagedStore } from './damaged-store.js';
import type { VocabularyEntry } from './store-index.js';

export class Vocabulary {
  readonly size: number;
  private readonly path: string;
  private readonly entry: VocabularyEntry;
  private loaded: IdLookup | undefined;

  constructor(folder: string, entry: VocabularyEntry) {
    this.path = join(folder, entry.file);
    this.entry = entry;
    this.size = entry.size;
  }

  /** The original of a dense id. */
  original(dense: number): string {
    if (!Number.isInteger(dense) || dense < 0 || dense >= this.size) {
      throw new RangeError(`dense id ${dense} is outside 0..${this.size - 1} (${this.entry.file})`);
    }
    return this.lookup().original(dense);
  }

  /** The dense id of an original; undefined if unknown. */
  dense(original: string | number | bigint): number | undefined {
    const { byValue, compare } = this.lookup().search(String(original));
    let low = 0;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(byValue[middle] ?? 0) < 0) low = middle + 1;
      else high = middle;
    }
    const found = byValue[low];
    return found !== undefined && compare(found) === 0 ? found : undefined;
  }

  /** Occurrences of a dense id in the store. */
  count(dense: number): number {
    return Number(this.lookup().count[dense] ?? 0n);
  }

  /** The first `n` dense ids with their originals and counts, without loading the rest. */
  head(n: number): { original: string; count: number }[] {
    const file = new SafetensorsFile(this.path);
    const size = Math.min(n, this.size);
    const counts = new BigInt64Array(size);
    file.readInto('count', 'I64', 0, counts);
    let originals: string[];
    if (this.entry.kind === 'integer') {
      const values = new BigInt64Array(size);
      file.readInto('value', 'I64', 0, values);
      originals = Array.from(values, String);
    } else {
      const offsets = new BigInt64Array(size + 1);
      file.readInto('offsets', 'I64', 0, offsets);
      const end = Number(offsets[size]);
      const stored = file.place('bytes', 'U8').bytes;
      if (!(end >= 0 && end <= stored)) throw damagedStore(this.path, `has texts up to byte ${end} of ${stored}`);
      const bytes = Buffer.alloc(end);
      file.readInto('bytes', 'U8', 0, bytes);
      originals = Array.from(counts, (_, i) => bytes.toString('utf8', Number(offsets[i]), Number(offsets[i + 1])));
    }
    file.close();
    return originals.map((original, i) => ({ original, count: Number(counts[i]) }));
  }

  /** Loaded on first use: most runs never translate an id. */
  private lookup(): IdLookup {
    const { kind, size } = this.entry;
    this.loaded ??= kind === 'integer' ? integerLookup(this.path, size) : textLookup(this.path, size);
    return this.loaded;
  }
}

interface IdLookup {
  readonly count: BigInt64Array;
  original(dense: number): string;
  /** The search order, and a comparison of a dense id's original with `wanted`. */
  search(wanted: string): { byValue: Int32Array; compare: (dense: number) => number };
}

function integerLookup(path: string, size: number): IdLookup {
  const file = new SafetensorsFile(path);
  const value = file.read('value', 'I64');
  const byValue = file.read('by_value', 'I32');
  const count = file.read('count', 'I64');
  file.close();
  expectSizes(path, size, [value.length, byValue.length, count.length]);
  return {
    count,
    original: dense => String(value[dense]),
    search: wanted => {
      if (!/^-?\d+$/.test(wanted)) return { byValue: new Int32Array(0), compare: () => 1 };
      const key = BigInt(wanted);
      return {
        byValue,
        compare: dense => {
          const other = value[dense] ?? 0n;
          return other < key ? -1 : other > key ? 1 : 0;
        },
      };
    },
  };
}

function expectSizes(path: string, size: number, found: readonly number[]): void {
  if (found.every(n => n === size)) return;
  throw damagedStore(path, `holds ${found.join(', ')} values, counts and places; the index says ${size}`);
}

/** Compares text by UTF-8 bytes. */
export function compareTexts(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

function textLookup(path: string, size: number): IdLookup {
  const file = new SafetensorsFile(path);
  const bytes = Buffer.from(file.read('bytes', 'U8').buffer);
  const offsets = file.read('offsets', 'I64');
  const byValue = file.read('by_value', 'I32');
  const count = file.read('count', 'I64');
  file.close();
  expectSizes(path, size, [offsets.length - 1, byValue.length, count.length]);
  const slice = (dense: number): Buffer => bytes.subarray(Number(offsets[dense]), Number(offsets[dense + 1]));
  return {
    count,
    original: dense => slice(dense).toString('utf8'),
    search: wanted => {
      const key = Buffer.from(wanted);
      return { byValue, compare: dense => compareTexts(slice(dense), key) };
    },
  };
}
