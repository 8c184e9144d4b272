// Batches one after another, some of them read before they are asked for. Reading runs on the event loop, in the gaps
// in which the caller awaits the native streams, so it needs no thread of its own.
//
// The cursor counts consumed batches only: what waits in the queue is recomputable from it, so a checkpoint never
// has to describe it.

import type { SequenceSource } from '../sequence-source.js';
import type { BatchPlan, Cursor } from './batch-plan.js';
import { BatchBuffer, type JaggedBatch } from './jagged-batch.js';

export interface BatchStreamOptions {
  source: SequenceSource;
  plan: BatchPlan;
  /** Where to start: {epoch: 0, position: 0} for a new run, the checkpoint's cursor for a resumed one. */
  cursor?: Cursor;
  /** Batches read ahead at most (2 unless given; 0 reads on demand). */
  prefetch?: number;
  /** A batch stays valid until `held` further ones have been taken (1 unless given). */
  held?: number;
  /** Keeps this rank's share of a global batch's windows; all of them unless given. */
  select?: (windows: Int32Array, cursor: Cursor) => Int32Array;
}

export class BatchStream {
  readonly #plan: BatchPlan;
  readonly #select: (windows: Int32Array, cursor: Cursor) => Int32Array;
  readonly #prefetch: number;
  readonly #buffers: BatchBuffer[];
  readonly #queue: JaggedBatch[] = [];
  #consumed: Cursor;
  #read: Cursor;
  #filled = 0;
  #idle: NodeJS.Immediate | undefined;

  constructor({ source, plan, cursor, prefetch = 2, held = 1, select = windows => windows }: BatchStreamOptions) {
    // Advancing by 0 also checks the cursor, and carries one at the end of an epoch over to the next.
    this.#consumed = plan.advance(cursor ?? { epoch: 0, position: 0 }, 0);
    this.#read = this.#consumed;
    this.#plan = plan;
    this.#select = select;
    this.#prefetch = prefetch;
    this.#buffers = Array.from({ length: prefetch + held }, () => new BatchBuffer(source, plan.windows));
  }

  /** The place of the batch that `next` will give; what a checkpoint stores. */
  get cursor(): Cursor {
    return { ...this.#consumed };
  }

  next(): JaggedBatch {
    const batch = this.#queue.shift() ?? this.#readOne();
    this.#consumed = this.#plan.advance(this.#consumed);
    this.#fillWhenIdle();
    return batch;
  }

  /** Stops reading ahead; the stream can be dropped. */
  close(): void {
    clearImmediate(this.#idle);
    this.#idle = undefined;
  }

  #readOne(): JaggedBatch {
    const buffer = this.#buffers[this.#filled % this.#buffers.length]!;
    const batch = buffer.fill(this.#select(this.#plan.batch(this.#read), this.#read));
    this.#filled++;
    this.#read = this.#plan.advance(this.#read);
    return batch;
  }

  #fillWhenIdle(): void {
    if (this.#idle !== undefined || this.#queue.length >= this.#prefetch) return;
    this.#idle = setImmediate(() => {
      this.#idle = undefined;
      try {
        this.#queue.push(this.#readOne());
      } catch {
        return; // `next` meets the same error when it reads this batch, and its caller can handle it
      }
      this.#fillWhenIdle();
    });
  }
}
