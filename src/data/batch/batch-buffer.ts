// Reads windows of a source into jagged batches. Buffers are reused, so a steady-state step allocates only the views.
//
// B sequences, T tokens.

import type { JaggedBatch } from '../../tensor/jagged.js';
import type { SequenceSource } from '../sequence-source.js';
import { type Windows, windowTokens } from './windows.js';

/** A batch read from a source, and the origin of its sequences. */
export interface SourceBatch extends JaggedBatch {
  target: Int32Array;
  /** [B] user of each sequence. */
  users: Int32Array;
  /** [B] index of the last target in the user's events; everything before it is the history. */
  ends: Int32Array;
}

/** Capacity in tokens. The input columns have room for one more event: see `fill`. */
interface TokenColumns {
  capacity: number;
  input: { item: Int32Array; time?: BigInt64Array; action?: Int32Array };
  target: Int32Array;
  nextTime?: BigInt64Array;
}

function allocateTokens(capacity: number, source: SequenceSource): TokenColumns {
  const columns: TokenColumns = {
    capacity,
    input: { item: new Int32Array(capacity + 1) },
    target: new Int32Array(capacity),
  };
  if (source.hasAction) columns.input.action = new Int32Array(capacity + 1);
  if (source.hasTime) {
    columns.input.time = new BigInt64Array(capacity + 1);
    columns.nextTime = new BigInt64Array(capacity);
  }
  return columns;
}

export class BatchBuffer {
  readonly #source: SequenceSource;
  readonly #windows: Windows;
  #offsets = new Int32Array(1);
  #users = new Int32Array(0);
  #ends = new Int32Array(0);
  #tokens: TokenColumns;

  constructor(source: SequenceSource, windows: Windows) {
    this.#source = source;
    this.#windows = windows;
    this.#tokens = allocateTokens(0, source);
  }

  /** Reads the windows `ids`; the result is valid until the next call. */
  fill(ids: Int32Array): SourceBatch {
    const windows = this.#windows;
    let tokens = 0;
    for (const id of ids) tokens += windowTokens(windows, id);
    this.#reserve(tokens, ids.length);
    const { input, target, nextTime } = this.#tokens;
    let at = 0;
    for (let b = 0; b < ids.length; b++) {
      const id = ids[b]!;
      const user = windows.user[id]!;
      const from = windows.from[id]!;
      const to = windows.to[id]!;
      this.#users[b] = user;
      this.#ends[b] = to - 1;
      // One read per window: its last event is not an input and is overwritten by the next window.
      this.#source.read(user, from, to, input, at);
      const end = at + to - from - 1;
      target.set(input.item.subarray(at + 1, end + 1), at);
      if (nextTime && input.time) nextTime.set(input.time.subarray(at + 1, end + 1), at);
      at = end;
      this.#offsets[b + 1] = at;
    }
    return this.#view(tokens, ids.length);
  }

  /** Grows by doubling, so that allocations soon stop. */
  #reserve(tokens: number, sequences: number): void {
    if (sequences > this.#users.length) {
      const capacity = Math.max(sequences, 2 * this.#users.length);
      this.#offsets = new Int32Array(capacity + 1);
      this.#users = new Int32Array(capacity);
      this.#ends = new Int32Array(capacity);
    }
    if (tokens > this.#tokens.capacity) {
      this.#tokens = allocateTokens(Math.max(tokens, 2 * this.#tokens.capacity), this.#source);
    }
  }

  #view(tokens: number, sequences: number): SourceBatch {
    const { input, target, nextTime } = this.#tokens;
    const batch: SourceBatch = {
      offsets: this.#offsets.subarray(0, sequences + 1),
      item: input.item.subarray(0, tokens),
      target: target.subarray(0, tokens),
      users: this.#users.subarray(0, sequences),
      ends: this.#ends.subarray(0, sequences),
    };
    if (input.time) batch.time = input.time.subarray(0, tokens);
    if (nextTime) batch.nextTime = nextTime.subarray(0, tokens);
    if (input.action) batch.action = input.action.subarray(0, tokens);
    return batch;
  }
}
