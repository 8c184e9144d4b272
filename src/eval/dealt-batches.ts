// Batches of evaluation windows, distributed over the ranks: each has consecutive windows with about equal tokens. States do
// not depend on the other sequences of a batch.

import { BatchBuffer, type SourceBatch } from '../data/batch/batch-buffer.js';
import { BatchPlan } from '../data/batch/batch-plan.js';
import { type Windows, windowsPart, windowTokens } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';

/** Token budget of a batch; a longer sequence gets a larger batch. */
const BATCH_TOKENS = 16_384;
const NO_WINDOWS = new Int32Array(0);

export interface DealOptions {
  maxLength: number;
  ranks?: RankGroups | undefined;
}

export class DealtBatches {
  /** Window ids of each batch of this rank. */
  readonly tokens: readonly number[];
  readonly #plan: BatchPlan;
  readonly #buffer: BatchBuffer;

  constructor(source: SequenceSource, all: Windows, { maxLength, ranks }: DealOptions) {
    const windows = ranks ? windowsPart(all, { index: ranks.world.rank, count: ranks.world.size }) : all;
    const size = { tokens: Math.max(BATCH_TOKENS, maxLength) };
    this.#plan = new BatchPlan({ windows, size, seed: 0, shuffle: false });
    this.#buffer = new BatchBuffer(source, windows);
    this.tokens = Array.from({ length: this.#plan.batches(0) }, (_, position) =>
      this.#windows(position).reduce((sum, w) => sum + windowTokens(windows, w), 0),
    );
  }

  /** Empty beyond the last batch. Valid until the next call. */
  read(position: number): SourceBatch {
    return this.#buffer.fill(position < this.tokens.length ? this.#windows(position) : NO_WINDOWS);
  }

  #windows(position: number): Int32Array {
    return this.#plan.batch({ epoch: 0, position });
  }
}
