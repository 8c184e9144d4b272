// The cases of an evaluation in batches: what the model reads, which item it has to find, and which items are left out
// of the ranking. Model and baselines go through the same cases in the same order.

import { BatchPlan } from '../data/batch/batch-plan.js';
import { BatchBuffer, type SourceBatch } from '../data/batch/batch-buffer.js';
import { evaluationWindows, sampleUsers } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';

export interface CaseOptions {
  source: SequenceSource;
  part: 'validation' | 'test';
  maxLength: number;
  /** Left out of the ranking: all earlier items, those the model read, or nothing. */
  exclude: 'history' | 'input' | 'none';
  /** Held-out events of a user to predict, oldest first; 1 by default. */
  targets?: number;
  /** This many users, drawn by a fixed seed: the same ones each time; all by default. */
  users?: number;
}

export interface CaseBatch {
  batch: SourceBatch;
  /** [C] the items to find. */
  targets: Int32Array;
  /** Case c leaves out ids excluded[excludedOffsets[c]] .. excluded[excludedOffsets[c + 1] - 1]. */
  excluded: Int32Array;
  excludedOffsets: Int32Array;
}

/** Tokens of an evaluation batch at least; a longer sequence makes its own larger. */
export const BATCH_TOKENS = 16_384;
/** Names the draw of `users`, so that every validation of every run takes the same ones. */
export const EVALUATED_USERS = 'evaluated users';

/** Valid until the next one is asked for. */
export function* evaluationCases(options: CaseOptions): Generator<CaseBatch> {
  const { source, part, maxLength, exclude } = options;
  const all = evaluationWindows(source, { part, maxLength, targetsPerUser: options.targets ?? 1 });
  const windows = sampleUsers(all, options.users, EVALUATED_USERS);
  const size = { tokens: Math.max(BATCH_TOKENS, maxLength) };
  const plan = new BatchPlan({ windows, size, seed: 0, shuffle: false });
  const buffer = new BatchBuffer(source, windows);
  for (let position = 0; position < plan.batches(0); position++) {
    const batch = buffer.fill(plan.batch({ epoch: 0, position }));
    const targets = Int32Array.from(batch.users, (_, c) => batch.target[batch.offsets[c + 1]! - 1]!);
    yield { batch, targets, ...exclusions(source, batch, exclude) };
  }
}

/** All items before the target of case c, oldest first. */
export function wholeHistory(source: SequenceSource, batch: SourceBatch, c: number): Int32Array {
  const item = new Int32Array(batch.ends[c]!);
  source.read(batch.users[c]!, 0, item.length, { item }, 0);
  return item;
}

function exclusions(
  source: SequenceSource,
  batch: SourceBatch,
  exclude: CaseOptions['exclude'],
): Pick<CaseBatch, 'excluded' | 'excludedOffsets'> {
  if (exclude === 'input') return { excluded: batch.item, excludedOffsets: batch.offsets };
  const excludedOffsets = new Int32Array(batch.users.length + 1);
  if (exclude === 'none') return { excluded: new Int32Array(0), excludedOffsets };
  for (let c = 0; c < batch.users.length; c++) excludedOffsets[c + 1] = excludedOffsets[c]! + batch.ends[c]!;
  const item = new Int32Array(excludedOffsets.at(-1)!);
  batch.users.forEach((user, c) => source.read(user, 0, batch.ends[c]!, { item }, excludedOffsets[c]!));
  return { excluded: item, excludedOffsets };
}
