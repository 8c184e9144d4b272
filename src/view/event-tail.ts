// Follows `events.jsonl` of a run that may still be training: each call reads what was appended since the last one. A resumed
// run rewrites the file; then everything is read again.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { LoggedEvent } from '../events/event.js';

export interface TailedEvents {
  /** Previously read events are void: the file was replaced. */
  replaced: boolean;
  events: LoggedEvent[];
  /** Number of lines that are not events. */
  damaged: number;
}

const CHUNK = 1 << 22;

export class EventTail {
  readonly path: string;
  #file = '';
  #offset = 0;
  /** The incomplete last line. */
  #rest = Buffer.alloc(0);

  constructor(path: string) {
    this.path = path;
  }

  /** Events since the last call; undefined if there is no file yet. */
  read(): TailedEvents {
    const events: LoggedEvent[] = [];
    let fd: number;
    try {
      fd = openSync(this.path, 'r');
    } catch {
      return { replaced: false, events, damaged: 0 };
    }
    try {
      const { ino, birthtimeMs, size } = fstatSync(fd);
      const file = `${ino} ${birthtimeMs}`;
      const replaced = this.#file !== '' && (file !== this.#file || size < this.#offset);
      if (replaced || this.#file === '') {
        this.#offset = 0;
        this.#rest = Buffer.alloc(0);
      }
      this.#file = file;
      let damaged = 0;
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(0, size - this.#offset)));
      for (let read = 1; this.#offset < size && read > 0; ) {
        read = readSync(fd, chunk, 0, chunk.length, this.#offset);
        this.#offset += read;
        const text = Buffer.concat([this.#rest, chunk.subarray(0, read)]);
        const end = text.lastIndexOf(10) + 1;
        this.#rest = Buffer.from(text.subarray(end));
        for (const line of text.toString('utf8', 0, end).split('\n')) {
          if (line === '') continue;
          const event = parseEvent(line);
          if (event) events.push(event);
          else damaged++;
        }
      }
      return { replaced, events, damaged };
    } finally {
      closeSync(fd);
    }
  }
}

function parseEvent(line: string): LoggedEvent | undefined {
  try {
    const event: LoggedEvent | null = JSON.parse(line);
    return typeof event?.kind === 'string' && typeof event.step === 'number' ? event : undefined;
  } catch {
    return undefined;
  }
}
