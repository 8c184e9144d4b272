// Counts what a model never sees, so that nothing is dropped silently: rows rejected by `prepare`, events older than the
// model's length, and events held out for validation.

import { join } from 'node:path';
import { z } from 'zod';
import type { ResolvedConfig } from '../config/schema.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { readTextFile } from '../util/regular-file.js';

const REPORT = z.object({
  rows: z.int(),
  bad: z.object({ rows: z.int(), share: z.number(), reasons: z.record(z.string(), z.int()) }),
  /** Column of each role. */
  columns: z.record(z.string(), z.string()),
  /** Roles whose column was guessed by its name. */
  guessed: z.array(z.string()),
  /** Notes on how columns were interpreted. */
  notes: z.array(z.string()),
  filters: z.array(z.object({ name: z.string(), removed: z.int() })),
});
/** The part of the `prepare` report that training repeats. */
export type PreparedSummary = z.infer<typeof REPORT> & {
  /** The file with all bad rows. */
  rejects: string;
};

/** From the store's report; undefined if it is missing or unreadable, which does not prevent training. */
export function readPreparedSummary(store: string): PreparedSummary | undefined {
  try {
    const report = REPORT.parse(JSON.parse(readTextFile(join(store, 'report.json')) ?? ''));
    return { ...report, rejects: join(store, 'rejects.csv') };
  } catch {
    return undefined;
  }
}

/** With `window: latest` a user's oldest events are not trained on; sliding windows cover all. */
export function countUntrained(
  { split, users }: Pick<SequenceSource, 'split' | 'users'>,
  { window, model, trainOn }: ResolvedConfig,
): { untrainedEvents: number; trainingEvents: number } {
  const ends = trainOn === 'train' ? split.trainEnd : split.validationEnd;
  let untrainedEvents = 0;
  let trainingEvents = 0;
  for (let user = 0; user < users; user++) {
    trainingEvents += ends[user]!;
    // One event more than the length: the first is an input, never a target.
    if (window === 'latest') untrainedEvents += Math.max(0, ends[user]! - model.maxLength - 1);
  }
  return { untrainedEvents, trainingEvents };
}

/** Validation events per pair that the model learns from; 0 if it learns from them too. */
export function validationShare(
  { split, users }: Pick<SequenceSource, 'split' | 'users'>,
  config: ResolvedConfig,
): number {
  if (config.trainOn !== 'train') return 0;
  let [pairs, heldOut] = [0, 0];
  for (let user = 0; user < users; user++) {
    const end = Math.max(1, split.trainEnd[user]!);
    pairs += end - 1;
    heldOut += Math.max(0, split.validationEnd[user]! - end);
  }
  return heldOut / Math.max(1, pairs);
}
