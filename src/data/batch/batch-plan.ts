// Assigns windows to batches: a pure function of (windows, size, seed, epoch, position), so any batch can be recomputed by its
// number, and a resumed run reads exactly what the uninterrupted one would have. Reads no events.

import { UserError } from '../../util/errors.js';
import { Random } from '../../util/random.js';
import type { BatchOrder } from './batch-stream.js';
import { type Windows, windowTokens } from './windows.js';

/**
 * `tokens`: as many sequences as fit the budget, never more (the model's memory can rely on it).
 * `users`: a number of sequences, which under the 'latest' window policy is a number of users.
 */
export type BatchSize = { tokens: number } | { users: number };

/** Position of a run in its data, as plain JSON: batches [0, position) of the epoch are consumed. */
export interface Cursor {
  epoch: number;
  position: number;
}

interface Epoch {
  /** Window ids in reading order. */
  readonly order: Int32Array;
  /** Batch k is order[cuts[k]] .. order[cuts[k + 1] - 1]. */
  readonly cuts: Int32Array;
}

export interface BatchPlanOptions {
  windows: Windows;
  size: BatchSize;
  seed: number;
  /** False keeps the windows in order in every epoch, as in evaluation. */
  shuffle?: boolean;
}

export class BatchPlan implements BatchOrder<Cursor> {
  readonly windows: Windows;
  /** Tokens that one epoch trains on. */
  readonly tokens: number;
  readonly #size: BatchSize;
  readonly #seed: number;
  readonly #shuffle: boolean;
  /** The most recently used epochs: a run needs one, and the next one while it prefetches across the boundary. */
  readonly #recent = new Map<number, Epoch>();
  readonly #batchCounts: number[] = [];

  constructor({ windows, size, seed, shuffle = true }: BatchPlanOptions) {
    const [name, limit] = 'tokens' in size ? ['tokens', size.tokens] : ['users', size.users];
    if (!Number.isInteger(limit) || limit < 1) {
      throw new UserError('bad-batch-size', `batch.${name} is ${limit}`, 'Use a whole number of at least 1.');
    }
    let [total, longest] = [0, 0];
    for (let w = 0; w < windows.count; w++) {
      total += windowTokens(windows, w);
      longest = Math.max(longest, windowTokens(windows, w));
    }
    if ('tokens' in size && longest > limit) {
      throw new UserError(
        'batch-too-small',
        `a batch of ${limit} tokens cannot hold the longest sequence, ${longest} tokens`,
        `Raise batch.tokens to at least ${longest}, or lower the model's maximum length.`,
      );
    }
    this.windows = windows;
    this.tokens = total;
    this.#size = size;
    this.#seed = seed;
    this.#shuffle = shuffle;
  }

  /** Batches in an epoch. With a token budget it varies slightly between epochs, with the order. */
  batches(epoch: number): number {
    return (this.#batchCounts[epoch] ??= this.#epoch(epoch).cuts.length - 1);
  }

  /** Window ids of batch `position` of `epoch`; a read-only view. */
  batch({ epoch, position }: Cursor): Int32Array {
    const { order, cuts } = this.#epoch(epoch);
    if (!Number.isInteger(position) || position < 0 || position >= cuts.length - 1) {
      throw new RangeError(`batch ${position} of epoch ${epoch}: that epoch has ${cuts.length - 1} batches`);
    }
    return order.subarray(cuts[position], cuts[position + 1]);
  }

  next(cursor: Cursor): Cursor {
    return this.advance(cursor);
  }

  /** The cursor `batches` further on; the series of epochs is endless. */
  advance({ epoch, position }: Cursor, batches = 1): Cursor {
    if (this.windows.count === 0) throw new RangeError('no training pairs: every user has fewer than two events');
    let next = position + batches;
    if (!Number.isInteger(next) || next < 0)
      throw new RangeError(`no batch ${next}: positions are whole numbers from 0`);
    while (next >= this.batches(epoch)) next -= this.batches(epoch++);
    return { epoch, position: next };
  }

  /** The cursor before global step `step`, counted from 0 over all epochs. */
  cursorAt(step: number): Cursor {
    return this.advance({ epoch: 0, position: 0 }, step);
  }

  #epoch(epoch: number): Epoch {
    if (!Number.isInteger(epoch) || epoch < 0) throw new RangeError(`epoch must be a whole number, got ${epoch}`);
    const known = this.#recent.get(epoch);
    if (known) return known;
    const order = Int32Array.from({ length: this.windows.count }, (_, w) => w);
    if (this.#shuffle) new Random(this.#seed, 'batch order', epoch).shuffle(order);
    const made = { order, cuts: cutBatches(this.windows, order, this.#size) };
    const [oldest] = this.#recent.keys();
    if (this.#recent.size === 2) this.#recent.delete(oldest!);
    this.#recent.set(epoch, made);
    return made;
  }
}

function cutBatches(windows: Windows, order: Int32Array, size: BatchSize): Int32Array {
  const cuts = [0];
  let filled = 0;
  for (let i = 0; i < order.length; i++) {
    const weight = 'tokens' in size ? windowTokens(windows, order[i]!) : 1;
    if (filled + weight > ('tokens' in size ? size.tokens : size.users)) {
      cuts.push(i);
      filled = 0;
    }
    filled += weight;
  }
  if (order.length > 0) cuts.push(order.length);
  return Int32Array.from(cuts);
}
