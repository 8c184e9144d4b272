// Validation at the end of an epoch: the configured metric on the events that choose the epoch, for the model and the baselines.

import type { ResolvedConfig } from '../config/schema.js';
import { partBounds } from '../data/batch/windows.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import { logLikelihood } from '../eval/log-likelihood.js';
import { metricOf } from '../eval/metrics.js';
import { rankCases } from '../eval/rank-cases.js';
import { validationBaselines } from '../eval/validation-baselines.js';
import type { Model } from '../nn/model.js';
import type { Learner } from '../train/learner.js';

export interface Validation {
  validate: (model: Model) => Promise<number>;
  /** Absent for log-likelihood, for which baselines are not defined. */
  baselines?: () => Promise<Record<string, number>>;
}

/** Undefined if there are no such events, or if they are trained on. The returned functions are collective over `ranks`. */
export function validation(
  learner: Learner,
  source: SequenceSource,
  { evaluation, trainOn }: ResolvedConfig,
  ranks: RankGroups,
): Validation | undefined {
  const { exclude, targets, metric, users, on: part } = evaluation;
  const [starts, ends] = partBounds(source, part);
  if ((part === 'validation' && trainOn !== 'train') || !ends.some((end, user) => end > starts[user]!))
    return undefined;
  const cases = { source, part, ranks, ...(users && { users }) } as const;
  if (metric === 'loglik') return { validate: model => logLikelihood({ ...cases, model }) };
  const ranked = { ...cases, exclude, targets };
  const { maxLength } = learner.model.definition;
  return {
    validate: async model => metricOf(await rankCases({ ...ranked, model }), metric),
    baselines: () => validationBaselines({ ...ranked, maxLength }, metric),
  };
}
