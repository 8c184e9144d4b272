// A batch in memory: sequences end to end, no padding. The buffers belong to a BatchBuffer and are filled again and
// again, so a steady-state step allocates nothing but the views.
//
// B sequences, T tokens.

import type { SequenceSource } from '../sequence-source.js';
import { type Windows, windowTokens } from './windows.js';

export interface JaggedBatch {
  /** [B + 1] sequence b is tokens offsets[b] .. offsets[b + 1] - 1, oldest first. */
  offsets: Int32Array;
  /** [T] what the model reads. */
  item: Int32Array;
  /** [T] the item after it; an evaluation case is the last one of its sequence. */
  target: Int32Array;
  /** [T] when, in the source's unit; absent when the log has only an order. */
  time?: BigInt64Array;
  /** [T] the target's time. */
  nextTime?: BigInt64Array;
  /** [T] the input's action bits. */
  action?: Int32Array;
  /** [B] whose sequence it is. */
  users: Int32Array;
  /** [B] index, in the user's events, of the last target: what comes before it is the whole history. */
  ends: Int32Array;
}

/** What `SequenceSource.read` fills, for the inputs and for what follows them. */
interface Columns {
  item: Int32Array;
  time?: BigInt64Array;
  action?: Int32Array;
}

function allocateColumns(tokens: number, has: { time: boolean; action: boolean }): Columns {
  const columns: Columns = { item: new Int32Array(tokens) };
  if (has.time) columns.time = new BigInt64Array(tokens);
  if (has.action) columns.action = new Int32Array(tokens);
  return columns;
}

export class BatchBuffer {
  readonly #source: SequenceSource;
  readonly #windows: Windows;
  #offsets = new Int32Array(1);
  #users = new Int32Array(0);
  #ends = new Int32Array(0);
  #input!: Columns;
  #next!: Columns;

  constructor(source: SequenceSource, windows: Windows) {
    this.#source = source;
    this.#windows = windows;
    this.#allocate(0);
  }

  /** Reads the windows `ids`; the result is valid until the next call. */
  fill(ids: Int32Array): JaggedBatch {
    const windows = this.#windows;
    let tokens = 0;
    for (const id of ids) tokens += windowTokens(windows, id);
    this.#reserve(tokens, ids.length);
    let at = 0;
    for (let b = 0; b < ids.length; b++) {
      const id = ids[b]!;
      const user = windows.user[id]!;
      const from = windows.from[id]!;
      const to = windows.to[id]!;
      this.#users[b] = user;
      this.#ends[b] = to - 1;
      this.#source.read(user, from, to - 1, this.#input, at);
      this.#source.read(user, from + 1, to, this.#next, at);
      at += to - from - 1;
      this.#offsets[b + 1] = at;
    }
    return this.#view(tokens, ids.length);
  }

  /** Grows by doubling, so that a run soon stops allocating. */
  #reserve(tokens: number, sequences: number): void {
    if (sequences > this.#users.length) {
      const capacity = Math.max(sequences, 2 * this.#users.length);
      this.#offsets = new Int32Array(capacity + 1);
      this.#users = new Int32Array(capacity);
      this.#ends = new Int32Array(capacity);
    }
    if (tokens > this.#input.item.length) {
      this.#allocate(Math.max(tokens, 2 * this.#input.item.length));
    }
  }

  /** Nothing needs the action of what comes next. */
  #allocate(tokens: number): void {
    const { hasTime: time, hasAction: action } = this.#source;
    this.#input = allocateColumns(tokens, { time, action });
    this.#next = allocateColumns(tokens, { time, action: false });
  }

  #view(tokens: number, sequences: number): JaggedBatch {
    const batch: JaggedBatch = {
      offsets: this.#offsets.subarray(0, sequences + 1),
      item: this.#input.item.subarray(0, tokens),
      target: this.#next.item.subarray(0, tokens),
      users: this.#users.subarray(0, sequences),
      ends: this.#ends.subarray(0, sequences),
    };
    if (this.#input.time) batch.time = this.#input.time.subarray(0, tokens);
    if (this.#next.time) batch.nextTime = this.#next.time.subarray(0, tokens);
    if (this.#input.action) batch.action = this.#input.action.subarray(0, tokens);
    return batch;
  }
}
