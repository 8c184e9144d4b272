// The cases of an evaluation in batches: the model's input, the target, and the items excluded from the ranking. Model and
// baselines process the same cases in the same order. Ranks share them: each has consecutive cases, so that results
// concatenated by rank are in the order of a single rank.

import type { SourceBatch } from '../data/batch/batch-buffer.js';
import { evaluationWindows, sampleUsers } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import { DealtBatches } from './dealt-batches.js';

export interface CaseOptions {
  source: SequenceSource;
  part: 'validation' | 'test';
  maxLength: number;
  /** Excluded from the ranking: all earlier items, those the model read, or nothing. */
  exclude: 'history' | 'input' | 'none';
  /** Held-out events to predict per user, oldest first (default 1). */
  targets?: number;
  /** Evaluate this many users, drawn by a fixed seed; default: all. */
  users?: number;
  /** The ranks that share the cases; default: this one has all. */
  ranks?: RankGroups;
}

export interface CaseBatch {
  batch: SourceBatch;
  /** [C] the items to find. */
  targets: Int32Array;
  /** Case c excludes ids excluded[excludedOffsets[c]] .. excluded[excludedOffsets[c + 1] - 1]. */
  excluded: Int32Array;
  excludedOffsets: Int32Array;
}

/** Random purpose for drawing `users`, so that every validation of every run uses the same ones. */
export const EVALUATED_USERS = 'evaluated users';

/** This rank's batches of the windows that end with the events to predict. */
export function caseBatches({ source, part, maxLength, targets = 1, users, ranks }: CaseOptions): DealtBatches {
  const windows = sampleUsers(
    evaluationWindows(source, { part, maxLength, targetsPerUser: targets }),
    users,
    EVALUATED_USERS,
  );
  return new DealtBatches(source, windows, { maxLength, ranks });
}

/** Batches of this rank's cases. Each is valid until the next one is requested. */
export function* evaluationCases(options: CaseOptions): Generator<CaseBatch> {
  const batches = caseBatches(options);
  for (let position = 0; position < batches.tokens.length; position++) {
    yield caseBatch(options, batches.read(position));
  }
}

export function caseBatch({ source, exclude }: Pick<CaseOptions, 'source' | 'exclude'>, batch: SourceBatch): CaseBatch {
  const targets = Int32Array.from(batch.users, (_, c) => batch.target[batch.offsets[c + 1]! - 1]!);
  return { batch, targets, ...exclusions(source, batch, exclude) };
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
