// The batches of a run, from its data and its config: which there are, and how many steps they make.

import type { ResolvedConfig } from '../config/schema.js';
import { BatchPlan } from '../data/batch/batch-plan.js';
import { sampleUsers, trainingWindows } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { UserError } from '../util/errors.js';

export function planBatches(source: SequenceSource, config: ResolvedConfig): BatchPlan {
  const { split, users } = source;
  const trainEnd = config.trainOn === 'train' ? split.trainEnd : split.validationEnd;
  const all = trainingWindows({ users, split: { ...split, trainEnd } }, config.model.maxLength, config.window);
  const windows = sampleUsers(all, config.trainUsers, 'training users');
  if (windows.count === 0) {
    throw new UserError(
      'nothing-to-train-on',
      'no user has two training events, so there is no next event to learn',
      'Prepare with a lower --min-user or another --split, or check that --user names the right column.',
    );
  }
  return new BatchPlan({ windows, size: config.batch, seed: config.seed });
}

/**
 * Optimiser steps that schedule and progress count on: batches in groups of `accumulate`, the last of an epoch may be
 * smaller. Under a token budget later epochs may differ from the first by a batch or two.
 */
export function plannedSteps(plan: BatchPlan, config: ResolvedConfig): number {
  const all = Math.ceil(plan.batches(0) / config.optimizer.accumulate) * config.epochs;
  return Math.min(all, config.maxSteps ?? all);
}
