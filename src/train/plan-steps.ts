// The steps of a run, derived from its data and its config.

import type { ResolvedConfig } from '../config/schema.js';
import { BatchPlan } from '../data/batch/batch-plan.js';
import { sampleUsers, trainingWindows, windowsOf, type Windows } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { CostModel } from '../dist/balance/cost.js';
import { UserError } from '../util/errors.js';
import { StepPlans } from './step-plan.js';

/** `cost`: cost of a sequence by length, to balance the lanes. */
export function planSteps(source: SequenceSource, config: ResolvedConfig, cost: CostModel): StepPlans {
  const windows = windowsToTrain(source, config);
  const batches = new BatchPlan({ windows, size: config.batch, seed: config.seed });
  return new StepPlans({ batches, size: config.batch, lanes: config.batch.lanes, cost });
}

/** The windows of the histories to train on; refuses data without any. */
export function windowsToTrain(source: SequenceSource, config: ResolvedConfig): Windows {
  const { split, users } = source;
  const trainEnd = config.trainOn === 'train' ? split.trainEnd : split.validationEnd;
  const all = trainingWindows({ users, split: { ...split, trainEnd } }, config.model.maxLength, config.window);
  const recent =
    config.trainSince === undefined ? all : windowsOf(all, usersSince(source, trainEnd, config.trainSince));
  const windows = sampleUsers(recent, config.trainUsers, 'training users');
  if (windows.count === 0 && all.count > 0) {
    throw new UserError(
      'nothing-to-train-on',
      `no user has a training event at ${config.trainSince} (trainSince) or later: what came since is held out`,
      'Train on everybody with --set trainSince=0, or hold out nothing with --split none.',
    );
  }
  if (windows.count === 0) {
    throw new UserError(
      'nothing-to-train-on',
      'no user has two training events, so there is no next event to learn',
      'Prepare with a lower --min-user or another --split, or check that --user names the right column.',
    );
  }
  return windows;
}

/** Users whose last training event is at `since` or later. */
function usersSince(source: SequenceSource, trainEnd: Int32Array, since: number): Set<number> {
  if (!source.hasTime) {
    throw new UserError('no-times', 'trainSince is set, and the log has no times', 'Leave trainSince out.');
  }
  const into = { item: new Int32Array(1), time: new Float64Array(1) };
  const users = new Set<number>();
  for (let user = 0; user < source.users; user++) {
    const end = trainEnd[user]!;
    if (end === 0) continue;
    source.read(user, end - 1, end, into, 0);
    if (into.time[0]! >= since) users.add(user);
  }
  return users;
}

/**
 * Optimiser steps assumed by schedule and progress. With a token budget, later epochs may differ from the first by a step
 * or two.
 */
export function plannedSteps(plans: StepPlans, config: ResolvedConfig): number {
  const all = plans.steps(0) * config.epochs;
  return Math.min(all, config.maxSteps ?? all);
}
