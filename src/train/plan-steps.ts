// The steps of a run, from its data and its config: which there are, and how many.

import type { ResolvedConfig } from '../config/schema.js';
import { BatchPlan } from '../data/batch/batch-plan.js';
import { sampleUsers, trainingWindows, type Windows } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { CostModel } from '../dist/balance/cost.js';
import { UserError } from '../util/errors.js';
import { StepPlans } from './step-plan.js';

/** `cost`: what the model's sequences cost, for the balance between lanes. */
export function planSteps(source: SequenceSource, config: ResolvedConfig, cost: CostModel): StepPlans {
  const windows = windowsToTrain(source, config);
  const batches = new BatchPlan({ windows, size: config.batch, seed: config.seed });
  return new StepPlans({ batches, size: config.batch, lanes: config.batch.lanes, cost });
}

/** Which stretches of the histories are trained on; refuses data that has none. */
export function windowsToTrain(source: SequenceSource, config: ResolvedConfig): Windows {
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
  return windows;
}

/**
 * Optimiser steps that schedule and progress count on. Under a token budget later epochs may differ from the first by a
 * step or two.
 */
export function plannedSteps(plans: StepPlans, config: ResolvedConfig): number {
  const all = plans.steps(0) * config.epochs;
  return Math.min(all, config.maxSteps ?? all);
}
