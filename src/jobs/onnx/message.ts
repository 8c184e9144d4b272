// Protocol buffers as needed for ONNX: messages of varints, floats and nested bytes. A message is a list of pieces that are never
// copied, so that a large table is not duplicated in memory.

import { closeSync, fsyncSync, openSync } from 'node:fs';
import { writeFully } from '../../util/atomic-file.js';

const VARINT = 0;
const BYTES = 2;
const FIXED_32 = 5;

export class Message {
  readonly #pieces: Uint8Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  integer(field: number, value: number | bigint): this {
    return this.#add(varint((field << 3) | VARINT)).#add(varint(value));
  }

  float(field: number, value: number): this {
    return this.#add(varint((field << 3) | FIXED_32)).#add(new Uint8Array(Float32Array.of(value).buffer));
  }

  bytes(field: number, value: string | ArrayBufferView | Message): this {
    const content = typeof value === 'string' ? Buffer.from(value) : value;
    const length = content instanceof Message ? content.length : content.byteLength;
    this.#add(varint((field << 3) | BYTES)).#add(varint(length));
    if (content instanceof Message) for (const piece of content.#pieces) this.#add(piece);
    else this.#add(new Uint8Array(content.buffer, content.byteOffset, content.byteLength));
    return this;
  }

  write(file: string): void {
    const fd = openSync(file, 'w');
    try {
      for (const piece of this.#pieces) writeFully(fd, piece);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  #add(piece: Uint8Array): this {
    this.#pieces.push(piece);
    this.#length += piece.length;
    return this;
  }
}

/** Seven bits per byte, lowest first; negative numbers as 64-bit two's complement. */
function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
