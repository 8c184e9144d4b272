// safetensors files, written as a stream and read by ranges: an 8-byte header length, a JSON header, then the tensors without
// gaps. Sizes are known before the first byte is written, so a file of many GB needs no second pass and no buffering.
// Tensors are stored by descending element size, which keeps each aligned to its element.

import { closeSync, fstatSync, fsyncSync, openSync, readSync, statSync } from 'node:fs';
import { z } from 'zod';
import { writeFully } from './atomic-file.js';
import { UserError } from './errors.js';
import type { RowShard } from './row-shard.js';
import { reshardRows, type TensorFile } from './tensor-file.js';

const ELEMENT_BYTES = { F64: 8, I64: 8, U64: 8, F32: 4, I32: 4, U32: 4, F16: 2, BF16: 2, I16: 2, U16: 2, I8: 1, U8: 1 };
export type StoredDtype = keyof typeof ELEMENT_BYTES;

/** The typed array of each dtype; the 16-bit floats are raw bits. */
interface ArrayOf {
  F64: Float64Array;
  I64: BigInt64Array;
  U64: BigUint64Array;
  F32: Float32Array;
  I32: Int32Array;
  U32: Uint32Array;
  F16: Uint16Array;
  BF16: Uint16Array;
  I16: Int16Array;
  U16: Uint16Array;
  I8: Int8Array;
  U8: Uint8Array;
}
export type TensorArray<T extends StoredDtype> = ArrayOf[T];

const VIEW: { [T in StoredDtype]: (buffer: ArrayBuffer) => ArrayOf[T] } = {
  F64: buffer => new Float64Array(buffer),
  I64: buffer => new BigInt64Array(buffer),
  U64: buffer => new BigUint64Array(buffer),
  F32: buffer => new Float32Array(buffer),
  I32: buffer => new Int32Array(buffer),
  U32: buffer => new Uint32Array(buffer),
  F16: buffer => new Uint16Array(buffer),
  BF16: buffer => new Uint16Array(buffer),
  I16: buffer => new Int16Array(buffer),
  U16: buffer => new Uint16Array(buffer),
  I8: buffer => new Int8Array(buffer),
  U8: buffer => new Uint8Array(buffer),
};

export interface TensorSpec {
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
}

interface Placed extends TensorSpec {
  /** Byte range inside the data section. */
  readonly begin: number;
  readonly end: number;
}

/** Larger headers are considered damage, as in the official reader. */
const MAX_HEADER_BYTES = 100_000_000;

function byteLength(spec: TensorSpec): number {
  return spec.shape.reduce((n, d) => n * d, 1) * ELEMENT_BYTES[spec.dtype];
}

export class SafetensorsWriter {
  readonly path: string;
  private readonly fd: number;
  private readonly dataStart: number;
  private readonly placed = new Map<string, Placed>();
  private readonly written = new Map<string, number>();

  constructor(path: string, tensors: Readonly<Record<string, TensorSpec>>, metadata: Record<string, string> = {}) {
    this.path = path;
    const widestFirst = Object.entries(tensors).sort(([nameA, a], [nameB, b]) => {
      const difference = ELEMENT_BYTES[b.dtype] - ELEMENT_BYTES[a.dtype];
      return difference !== 0 ? difference : nameA < nameB ? -1 : 1;
    });
    const header: Record<string, unknown> = Object.keys(metadata).length > 0 ? { __metadata__: metadata } : {};
    let begin = 0;
    for (const [name, { dtype, shape }] of widestFirst) {
      const end = begin + byteLength({ dtype, shape });
      header[name] = { dtype, shape, data_offsets: [begin, end] };
      this.placed.set(name, { dtype, shape, begin, end });
      this.written.set(name, 0);
      begin = end;
    }
    const json = Buffer.from(JSON.stringify(header));
    const padded = Math.ceil(json.length / 8) * 8;
    const head = Buffer.alloc(8 + padded, 0x20);
    head.writeBigUInt64LE(BigInt(padded), 0);
    json.copy(head, 8);
    this.dataStart = head.length;
    this.fd = openSync(path, 'w');
    writeFully(this.fd, head, 0);
  }

  /** Appends the next elements of one tensor; tensors may be filled in any order, also interleaved. */
  append(name: string, values: NodeJS.ArrayBufferView): void {
    const place = this.placed.get(name);
    const done = this.written.get(name);
    if (!place || done === undefined) throw new Error(`${this.path} has no tensor '${name}'`);
    if (place.begin + done + values.byteLength > place.end) {
      throw new Error(
        `${this.path}: '${name}' holds ${place.end - place.begin} bytes, got ${done + values.byteLength}`,
      );
    }
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    writeFully(this.fd, bytes, this.dataStart + place.begin + done);
    this.written.set(name, done + values.byteLength);
  }

  /** Checks that every tensor is complete, flushes to disk unless told otherwise, and closes. */
  close({ flush = true } = {}): void {
    try {
      for (const [name, place] of this.placed) {
        const done = this.written.get(name) ?? 0;
        const whole = place.end - place.begin;
        if (done !== whole) throw new Error(`${this.path}: '${name}' got ${done} of ${whole} bytes`);
      }
      if (flush) fsyncSync(this.fd);
    } finally {
      closeSync(this.fd);
    }
  }

  /** Closes without checks, to abandon the file. */
  abandon(): void {
    closeSync(this.fd);
  }
}

/** Writes a small file at once. */
export function writeSafetensors(
  path: string,
  tensors: Readonly<Record<string, { dtype: StoredDtype; shape: readonly number[]; data: NodeJS.ArrayBufferView }>>,
  metadata: Record<string, string> = {},
): void {
  const writer = new SafetensorsWriter(path, tensors, metadata);
  try {
    for (const [name, { data }] of Object.entries(tensors)) writer.append(name, data);
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.close();
}

export class SafetensorsFile implements TensorFile {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorSpec>;
  readonly metadata: Readonly<Record<string, string>>;
  private readonly fd: number;
  private readonly dataStart: number;
  private readonly placed: ReadonlyMap<string, Placed>;

  constructor(path: string) {
    this.path = path;
    // Before it is opened: opening a pipe waits for its writer.
    if (!statSync(path).isFile()) throw damaged(path, 'it is not a regular file');
    this.fd = openSync(path, 'r');
    try {
      const size = fstatSync(this.fd).size;
      const lengthBytes = new Uint8Array(8);
      readFully(this.fd, lengthBytes, 0, path);
      const headerBytes = Number(new DataView(lengthBytes.buffer).getBigUint64(0, true));
      if (headerBytes > Math.min(size - 8, MAX_HEADER_BYTES)) throw damaged(path, `header of ${headerBytes} bytes`);
      const text = new Uint8Array(headerBytes);
      readFully(this.fd, text, 8, path);
      this.dataStart = 8 + headerBytes;
      const { metadata, placed } = parseHeader(path, text, size - this.dataStart);
      this.metadata = metadata;
      this.placed = placed;
      this.tensors = placed;
    } catch (error) {
      closeSync(this.fd);
      throw error;
    }
  }

  /** A whole tensor, in newly allocated memory. */
  read<T extends StoredDtype>(name: string, dtype: T): TensorArray<T> {
    const place = this.find(name, dtype);
    const bytes = new Uint8Array(place.end - place.begin);
    readFully(this.fd, bytes, this.dataStart + place.begin, this.path);
    return VIEW[dtype](bytes.buffer);
  }

  /** Fills `target` with the elements from `start` on: a single read, no allocation. */
  readInto<T extends StoredDtype>(name: string, dtype: T, start: number, target: TensorArray<T>): void {
    const place = this.find(name, dtype);
    const from = place.begin + start * ELEMENT_BYTES[dtype];
    if (start < 0 || from + target.byteLength > place.end) {
      throw new RangeError(`${this.path}: '${name}' has no elements ${start}..${start + target.length}`);
    }
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    readFully(this.fd, bytes, this.dataStart + from, this.path);
  }

  readRows(name: string, shard: RowShard, start: number, into: Float32Array<ArrayBuffer>): void {
    const [, cols = 1] = this.find(name, 'F32').shape;
    const read = (from: number, to: Float32Array<ArrayBuffer>): void => this.readInto(name, 'F32', from, to);
    if (shard.count === 1) read(start, into);
    else reshardRows([read], cols, shard, { start, into });
  }

  /** Position of a tensor in the file, for memory mapping. Aligned to its element. */
  place(name: string, dtype: StoredDtype): { offset: number; bytes: number } {
    const { begin, end } = this.find(name, dtype);
    const offset = this.dataStart + begin;
    if (offset % ELEMENT_BYTES[dtype] !== 0) throw damaged(this.path, `'${name}' begins at byte ${offset}, unaligned`);
    return { offset, bytes: end - begin };
  }

  close(): void {
    closeSync(this.fd);
  }

  private find(name: string, dtype: StoredDtype): Placed {
    const place = this.placed.get(name);
    if (!place) throw damaged(this.path, `no tensor '${name}'; there are ${[...this.placed.keys()].join(', ')}`);
    if (place.dtype !== dtype) throw damaged(this.path, `'${name}' is ${place.dtype}, expected ${dtype}`);
    return place;
  }
}

function damaged(path: string, what: string): UserError {
  return new UserError(
    'damaged-safetensors',
    `${path} is not a valid safetensors file: ${what}`,
    'Create the file again.',
  );
}

export function readFully(fd: number, bytes: Uint8Array, position: number, path: string): void {
  let done = 0;
  while (done < bytes.byteLength) {
    const n = readSync(fd, bytes, done, bytes.byteLength - done, position + done);
    if (n === 0) throw damaged(path, `it ends at byte ${position + done}`);
    done += n;
  }
}

const HEADER = z.looseObject({ __metadata__: z.record(z.string(), z.string()).optional() });
const ENTRY = z.object({
  dtype: z.custom<StoredDtype>(
    value => typeof value === 'string' && Object.hasOwn(ELEMENT_BYTES, value),
    'unknown dtype',
  ),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});

function parseHeader(
  path: string,
  text: Uint8Array,
  dataBytes: number,
): { metadata: Record<string, string>; placed: Map<string, Placed> } {
  let header: z.infer<typeof HEADER>;
  try {
    header = HEADER.parse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text)));
  } catch (cause) {
    throw damaged(path, `its header cannot be read (${shortened(String(cause))})`);
  }
  const { __metadata__: metadata = {}, ...entries } = header;
  const placed = new Map<string, Placed>();
  for (const [name, value] of Object.entries(entries)) {
    const entry = ENTRY.safeParse(value);
    if (!entry.success) throw damaged(path, `'${name}' is described by ${shortened(JSON.stringify(value))}`);
    const { dtype, shape, data_offsets: range } = entry.data;
    const [begin, end] = range;
    if (end - begin !== byteLength({ dtype, shape }) || end > dataBytes) {
      throw damaged(path, `'${name}' ${shortened(JSON.stringify(value))} does not fit ${dataBytes} bytes of data`);
    }
    placed.set(name, { dtype, shape, begin, end });
  }
  checkNoHoles(path, [...placed.values()], dataBytes);
  return { metadata, placed };
}

/** The format allows no gaps, overlaps or bytes after the last tensor. */
function checkNoHoles(path: string, places: readonly Placed[], dataBytes: number): void {
  let end = 0;
  for (const place of places.toSorted((a, b) => a.begin - b.begin || a.end - b.end)) {
    if (place.begin !== end)
      throw damaged(path, `a tensor begins at byte ${place.begin}, the one before ends at ${end}`);
    end = place.end;
  }
  if (end !== dataBytes) throw damaged(path, `${dataBytes} bytes of data, ${end} of them in tensors`);
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 120 ? `${line.slice(0, 120)}...` : line;
}
