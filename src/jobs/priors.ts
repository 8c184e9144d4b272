// The priors of a run: fitted once after training, kept in `priors.json`, used by whoever opens the run.

import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { ResolvedConfig } from '../config/schema.js';
import type { SequenceSource } from '../data/sequence-source.js';
import { fitPriors } from '../eval/priors/fit-priors.js';
import { PRIOR_WEIGHTS, type PriorWeights } from '../eval/priors/weights.js';
import type { Model } from '../nn/model.js';
import type { RunFolder } from '../train/run-folder.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { hasValidation } from './evaluate.js';

const PRIORS_FILE = z.strictObject({
  format: z.literal('turbogr-priors'),
  /** Null: they did not help on validation, and the model stands alone. */
  weights: PRIOR_WEIGHTS.nullable(),
  /** Validation events that were fitted. */
  cases: z.int(),
  /** Metric of the model alone and with priors, each case ranked with weights that were fitted without it. */
  metric: z.string(),
  alone: z.number(),
  together: z.number(),
});

export interface FitRunInput {
  run: RunFolder;
  model: Model;
  source: SequenceSource;
  config: ResolvedConfig;
}

/** What `priors.json` holds. */
export type RunPriors = Omit<z.infer<typeof PRIORS_FILE>, 'format'>;

/** Fits the priors on validation where the config wants them and there are events that the model was not trained on. */
export async function fitRunPriors({ run, model, source, config }: FitRunInput): Promise<RunPriors | undefined> {
  if (config.priors === 'off' || config.trainOn !== 'train' || !hasValidation(source)) return undefined;
  const { exclude, targets, metric } = config.evaluation;
  const judge = metric === 'loglik' ? 'ndcg@10' : metric;
  const { maxLength } = model.definition;
  const fitted = await fitPriors({
    device: model.device,
    source,
    maxLength,
    exclude,
    targets,
    ranked: model,
    metric: judge,
  });
  const { cases, alone, together } = fitted;
  const weights = together >= alone ? fitted.weights : null;
  const priors: RunPriors = { weights, cases, metric: judge, alone, together };
  writeFileAtomic(run.priors, `${JSON.stringify({ format: 'turbogr-priors', ...priors }, null, 2)}\n`);
  return priors;
}

export function readRunPriors(run: RunFolder): PriorWeights | undefined {
  if (!existsSync(run.priors)) return undefined;
  const found = PRIORS_FILE.safeParse(JSON.parse(readFileSync(run.priors, 'utf8')));
  if (found.success) return found.data.weights ?? undefined;
  const remedy = 'Remove the file to rank by the model alone, or train the run again.';
  throw new UserError('bad-priors', `${run.priors}: ${found.error.issues[0]!.message}`, remedy);
}
