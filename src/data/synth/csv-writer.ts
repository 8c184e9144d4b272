// A fast CSV writer: no string per row, one large buffer, one write per buffer. A file gets its name only when it is complete.

import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder, writeFully } from '../../util/atomic-file.js';

const CAPACITY = 1 << 20;
/** Upper bound on the length of a row; a row is started only if it fits. */
const LONGEST_ROW = 1 << 12;
const ZERO = 48;
const COMMA = 44;
const POINT = 46;
const NEWLINE = 10;

function digitCount(value: number): number {
  if (value < 10) return 1;
  if (value < 100) return 2;
  let count = 3;
  for (let bound = 1000; value >= bound; bound *= 10) count++;
  return count;
}

/** Writes a number below 2^31 as `count` zero-padded digits; returns the position after them. */
function writeDigits(bytes: Uint8Array, at: number, value: number, count: number): number {
  let rest = value | 0;
  for (let i = at + count - 1; i >= at; i--) {
    const quotient = (rest / 10) | 0;
    bytes[i] = ZERO + rest - 10 * quotient;
    rest = quotient;
  }
  return at + count;
}

export class CsvWriter {
  readonly path: string;
  readonly #temp: string;
  readonly #fd: number;
  readonly #bytes = Buffer.allocUnsafe(CAPACITY);
  #at = 0;
  /** Bytes handed to the file so far. */
  written = 0;
  rows = 0;

  constructor(path: string, header: string) {
    this.path = path;
    this.#temp = `${path}.${process.pid}.tmp`;
    this.#fd = openSync(this.#temp, 'w');
    this.#at = this.#bytes.write(`${header}\n`, 'latin1');
  }

  /** A whole number from 0 to 10^15, and the comma after it. */
  number(value: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    if (value < 1_000_000_000) {
      at = writeDigits(bytes, at, value, digitCount(value));
    } else {
      // Both halves fit V8's fast integer path.
      const high = Math.floor(value / 1_000_000);
      at = writeDigits(bytes, at, high, digitCount(high));
      at = writeDigits(bytes, at, value - high * 1_000_000, 6);
    }
    bytes[at] = COMMA;
    this.#at = at + 1;
  }

  /** A number from 0 to 10^12 with three decimals, and the comma after it. */
  thousandths(value: number): void {
    const scaled = Math.round(value * 1000);
    const whole = Math.floor(scaled / 1000);
    this.number(whole);
    this.#bytes[this.#at - 1] = POINT;
    this.#at = writeDigits(this.#bytes, this.#at, scaled - whole * 1000, 3);
    this.#bytes[this.#at++] = COMMA;
  }

  /** 0 or 1, and the comma after it. */
  flag(value: number): void {
    this.#bytes[this.#at++] = ZERO + value;
    this.#bytes[this.#at++] = COMMA;
  }

  /** Plain ASCII (quoted by the caller if it contains commas), and the comma after it. */
  text(value: string): void {
    for (let i = 0; i < value.length; i++) this.#bytes[this.#at++] = value.charCodeAt(i);
    this.#bytes[this.#at++] = COMMA;
  }

  /** Turns the last comma into the end of the row. */
  endRow(): void {
    this.#bytes[this.#at - 1] = NEWLINE;
    this.rows++;
    if (this.#at > CAPACITY - LONGEST_ROW) this.#flush();
  }

  /** Flushes the file and renames it to its final name. */
  finish(): void {
    this.#flush();
    fsyncSync(this.#fd);
    closeSync(this.#fd);
    renameSync(this.#temp, this.path);
    syncFolder(dirname(this.path));
  }

  /** Discards the unfinished file. */
  abandon(): void {
    closeSync(this.#fd);
    rmSync(this.#temp, { force: true });
  }

  #flush(): void {
    writeFully(this.#fd, this.#bytes.subarray(0, this.#at));
    this.written += this.#at;
    this.#at = 0;
  }
}
