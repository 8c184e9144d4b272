// The priors of a run: given by its config or fitted once after training, stored in `priors.json`, used whenever the run is opened.

import { z } from 'zod';
import { PRIOR_WEIGHTS, type PriorWeights } from '../config/prior-weights.js';
import type { ResolvedConfig } from '../config/schema.js';
import type { SequenceSource } from '../data/sequence-source.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import { fitPriors } from '../eval/priors/fit-priors.js';
import type { Model } from '../nn/model.js';
import type { RunFolder } from '../train/run-folder.js';
import { writeFileAtomic } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { canonicalJson, sha256 } from '../util/hash.js';
import { readTextFile } from '../util/regular-file.js';
import { hasValidation } from './evaluate.js';

const PRIORS_FILE = z.strictObject({
  format: z.literal('turbogr-priors'),
  /** The run that they belong to. */
  identity: z.string(),
  /** Null: they did not help on validation, so the model is used alone. */
  weights: PRIOR_WEIGHTS.nullable(),
  /** Number of validation events used; this and the following are absent if the weights were given by the config. */
  cases: z.int().optional(),
  /** Cross-validated metric of the model alone, with priors, and of the priors alone. */
  metric: z.string().optional(),
  alone: z.number().optional(),
  together: z.number().optional(),
  without: z.number().optional(),
  /** SHA-256 of all of the above. */
  checksum: z.string(),
});
/** The part that tells whether there are priors. */
const REPORT = z.object({
  reason: z.string(),
  priors: z.object({ weights: PRIOR_WEIGHTS.nullable() }).optional(),
});

export interface FitRunInput {
  run: RunFolder;
  model: Model;
  source: SequenceSource;
  config: ResolvedConfig;
  /** The ranks that fit together; the first writes. */
  ranks: RankGroups;
}

/** What `priors.json` holds. */
export type RunPriors = Omit<z.infer<typeof PRIORS_FILE>, 'format' | 'identity' | 'checksum'>;

/** The priors of a trained run: given, or fitted if configured; stored with the run. Collective. */
export async function settleRunPriors(input: FitRunInput): Promise<RunPriors | undefined> {
  const { run, config, ranks } = input;
  const priors = typeof config.priors === 'object' ? { weights: config.priors } : await fitted(input);
  if (!priors || ranks.world.rank > 0) return priors;
  const content = { format: 'turbogr-priors', identity: run.identity, ...priors };
  const whole = { ...content, checksum: sha256(canonicalJson(content)) };
  writeFileAtomic(run.priors, `${JSON.stringify(whole, null, 2)}\n`);
  return priors;
}

/** Fitted on validation, if there are events that the model was not trained on. */
async function fitted({ model, source, config, ranks }: FitRunInput): Promise<RunPriors | undefined> {
  if (config.priors === 'off' || config.trainOn !== 'train' || !hasValidation(source)) return undefined;
  const { exclude, targets, metric } = config.evaluation;
  const judge = metric === 'loglik' ? 'ndcg@10' : metric;
  const { weights, cases, alone, together, without } = await fitPriors({
    device: model.device,
    source,
    maxLength: model.definition.maxLength,
    exclude,
    targets,
    ranked: model,
    metric: judge,
    ranks,
  });
  const helpful = Math.max(together, without) >= alone;
  return { weights: helpful ? weights : null, cases, metric: judge, alone, together, without };
}

/** Undefined if the run has none. Edited, damaged or missing ones are refused: the run would rank differently. */
export function readRunPriors(run: RunFolder): PriorWeights | undefined {
  const refuse = (what: string) =>
    new UserError('bad-priors', `${run.priors} ${what}`, `Fit them again: npx turbogr resume ${run.path}`);
  const text = readTextFile(run.priors);
  if (text === undefined) {
    if (hasPriors(readTextFile(run.report)))
      throw refuse("is missing, and the run's report says that it ranks by them");
    return undefined;
  }
  const found = PRIORS_FILE.safeParse(parseJson(text));
  if (!found.success) throw refuse('is damaged or of an earlier version');
  const { checksum, ...content } = found.data;
  if (sha256(canonicalJson(content)) !== checksum)
    throw refuse('does not match its checksum: it was edited or damaged');
  if (!run.identities.includes(content.identity)) throw refuse('belongs to another run');
  return content.weights ?? undefined;
}

function hasPriors(report: string | undefined): boolean {
  const known = REPORT.safeParse(parseJson(report ?? ''));
  return known.success && known.data.reason !== 'interrupted' && Boolean(known.data.priors?.weights);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
