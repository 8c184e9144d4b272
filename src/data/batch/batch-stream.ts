// A stream of batches with prefetching. Reading runs on the event loop while the caller awaits the native streams, so it
// needs no thread.
//
// The position counts consumed batches only: prefetched ones can be recomputed from it, so checkpoints need not store them.

import type { SequenceSource } from '../sequence-source.js';
import { BatchBuffer, type SourceBatch } from './batch-buffer.js';
import type { Windows } from './windows.js';

/** An order of batches: the windows at a position, and the next position. `P` is plain data. */
export interface BatchOrder<P> {
  readonly windows: Windows;
  batch(place: P): Int32Array;
  next(place: P): P;
}

export interface BatchStreamOptions<P> {
  source: SequenceSource;
  order: BatchOrder<P>;
  /** The first batch to return. */
  from: P;
  /** Maximum prefetched batches (default 2); 0 reads on demand. */
  prefetch?: number;
  /** Number of later batches that may be taken before a batch becomes invalid (default 1). */
  kept?: number;
}

export class BatchStream<P> {
  readonly #order: BatchOrder<P>;
  readonly #prefetch: number;
  readonly #buffers: BatchBuffer[];
  readonly #queue: SourceBatch[] = [];
  #taken: P;
  #read: P;
  #filled = 0;
  #idle: NodeJS.Immediate | undefined;

  constructor({ source, order, from, prefetch = 2, kept = 1 }: BatchStreamOptions<P>) {
    this.#taken = from;
    this.#read = from;
    this.#order = order;
    this.#prefetch = prefetch;
    this.#buffers = Array.from({ length: prefetch + kept }, () => new BatchBuffer(source, order.windows));
  }

  /** The position of the batch that `next` will return. */
  get place(): P {
    return this.#taken;
  }

  next(): SourceBatch {
    const batch = this.#queue.shift() ?? this.#readOne();
    this.#taken = this.#order.next(this.#taken);
    this.#fillWhenIdle();
    return batch;
  }

  /** Stops prefetching; the stream can be dropped. */
  close(): void {
    clearImmediate(this.#idle);
    this.#idle = undefined;
  }

  #readOne(): SourceBatch {
    const buffer = this.#buffers[this.#filled % this.#buffers.length]!;
    const batch = buffer.fill(this.#order.batch(this.#read));
    this.#filled++;
    this.#read = this.#order.next(this.#read);
    return batch;
  }

  #fillWhenIdle(): void {
    if (this.#idle !== undefined || this.#queue.length >= this.#prefetch) return;
    this.#idle = setImmediate(() => {
      this.#idle = undefined;
      try {
        this.#queue.push(this.#readOne());
      } catch {
        return; // `next` fails with the same error when it reads this batch, where the caller can handle it
      }
      this.#fillWhenIdle();
    });
  }
}
