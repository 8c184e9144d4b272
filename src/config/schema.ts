// The schema of a training run. YAML files, JavaScript or TypeScript objects and command-line flags are all validated here;
// unknown keys are refused, and the JSON Schema for editors is generated from it.
// Elsewhere: precedence of files, flags and recipes (resolve.ts), named configs (recipes.ts).

import { z } from 'zod';
import { PRIOR_WEIGHTS } from './prior-weights.js';

const whole = z.number().int();
const positive = whole.min(1);
const rate = z.number().min(0).max(0.95);

const model = z.strictObject({
  kind: z.enum(['hstu', 'fuxi', 'sasrec']).default('hstu').describe('architecture of the blocks'),
  variant: z
    .enum(['textbook', 'meta'])
    .default('textbook')
    .describe('sasrec only: the pre-norm Transformer, or the model of the public HSTU recipes'),
  size: z
    .enum(['nano', 'micro', 'mini', 'tiny', 'small', 'medium', 'large', 'long'])
    .optional()
    .describe('sets width, depth, heads and length; tiny to long are those of the TurboGR paper'),
  maxLength: positive.max(32_768).default(200).describe('longest sequence, in events'),
  outputSlots: whole.min(0).default(1).describe('added to maxLength to give N, the constant of attention and bias'),
  d: positive.default(64).describe('model width D'),
  blocks: positive.default(2).describe('blocks L'),
  heads: positive.default(1).describe('attention heads h'),
  dqk: positive.optional().describe('query and key width of a head (default: d / heads)'),
  dv: positive.optional().describe('value width of a head (default: d / heads)'),
  feedForward: z.number().positive().default(1).describe('inner width of the feed-forward as a multiple of d'),
  dropout: rate.default(0.2).describe('after the input and inside the blocks'),
  attentionDropout: rate.default(0).describe('on softmax weights (sasrec only)'),
  timeBias: z
    .enum(['buckets', 'power', 'off'])
    .default('buckets')
    .describe(
      'relative time bias of logs with timestamps: a table over gaps, alpha * gamma^(T^beta) with T in days, or none',
    ),
  timeBuckets: z
    .union([z.literal(16), z.literal(32), z.literal(64), z.literal(128)])
    .default(128)
    .describe('entries of the table: 128 as published by Meta, 32 in the TurboGR paper'),
  actions: z.boolean().default(false).describe('add an embedding of the action to the input, one row per combination'),
  sideFeatures: z.array(z.string().min(1)).default([]).describe('item feature columns whose embeddings are added'),
});

const share = z.number().min(0).max(1);

const negatives = z.strictObject({
  kind: z
    .enum(['uniform', 'popularity', 'in-batch', 'mixed'])
    .default('uniform')
    .describe('where negatives are drawn from'),
  count: positive.max(65_536).default(128).describe('negatives R per token'),
  logq: z
    .boolean()
    .optional()
    .describe('correct logits for the sampling probability (default: if the draw is not uniform)'),
  power: z.number().min(0).max(2).default(1).describe('popularity draws are proportional to count^power'),
  shares: z
    .strictObject({
      uniform: share.default(0.5).describe('share of uniform draws'),
      popularity: share.default(0.25).describe('share of draws by popularity'),
      inBatch: share.default(0.25).describe("share of the lane's own positives"),
    })
    .prefault({})
    .describe('shares of a mixed draw'),
  pool: whole
    .min(0)
    .max(65_536)
    .default(0)
    .describe(
      'draw a pool of this many distinct rows per lane; each token uses count of them, or all if count >= pool',
    ),
  storage: z
    .enum(['f32', 'f16'])
    .default('f32')
    .describe("data type of the negatives' rows in the loss; positives, gradients and table stay f32"),
  segment: whole
    .min(0)
    .default(0)
    .describe('positions per segment of fetched rows, double-buffered; 0: rows are read in place'),
  mask: z
    .enum(['positive', 'history'])
    .default('positive')
    .describe("excluded from the negatives: the token's positive, or all items of its sequence"),
  sharing: z
    .strictObject({
      factor: positive.max(16).default(1).describe('k: each token also uses the draws of k - 1 others; 1 is off'),
      of: z
        .enum(['outputs', 'scalars'])
        .default('outputs')
        .describe("score others' draws with the own output, or reuse others' logits"),
    })
    .prefault({})
    .describe('logit sharing'),
});

const loss = z.strictObject({
  kind: z
    .enum(['sampled-softmax', 'full-softmax', 'bce', 'gbce', 'auto'])
    .default('sampled-softmax')
    .describe('auto: full softmax if it is no slower than the sampled one, measured once when a run is created'),
  temperature: z.number().positive().default(0.05).describe('logits are divided by it'),
  normalizeUser: z.boolean().default(true).describe('L2-normalise the model output'),
  normalizeItem: z.boolean().default(true).describe('L2-normalise item rows'),
  smoothing: z
    .number()
    .min(0)
    .lt(1)
    .optional()
    .describe('label smoothing of the full softmax: the share of the target that all items have in equal parts'),
  calibration: z.number().min(0).max(1).default(0.75).describe('t of gBCE: 0 is BCE, 1 full correction'),
  negatives: negatives.prefault({}),
});

const schedule = z.strictObject({
  kind: z.enum(['constant', 'linear', 'cosine']).default('constant').describe('from the peak to `floor` over the run'),
  warmup: whole.min(0).default(0).describe('steps of linear warm-up'),
  floor: z.number().min(0).max(1).default(0).describe('last learning rate as a share of the peak'),
});

const optimizer = z.strictObject({
  lr: z.number().positive().max(10).default(1e-3).describe('peak learning rate'),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.98),
  eps: z.number().positive().default(1e-8),
  weightDecay: z.number().min(0).default(0).describe('decoupled, on matrices only'),
  table: z
    .enum(['adamw', 'lazy-adam', 'row-adagrad'])
    .default('adamw')
    .describe('item table: every row every step, touched rows only, or one accumulator per row'),
  tableStorage: z
    .enum(['f32', 'f16', 'bf16'])
    .default('f32')
    .describe('storage of the item table; 16-bit rows use unbiased stochastic rounding (not with adamw)'),
  tableLr: z.number().positive().max(10).optional().describe('learning rate of the item table (default: lr)'),
  clip: z.number().positive().optional().describe('maximum global norm of the dense gradients (default: no clipping)'),
  schedule: schedule.prefault({}),
  ema: z
    .number()
    .gt(0)
    .lt(1)
    .optional()
    .describe('decay of an exponential moving average of the weights, which is then evaluated'),
});

const lanes = positive
  .max(1024)
  .default(1)
  .describe('lanes per step, each a batch; their gradients are summed in a fixed order');

const evaluation = z.strictObject({
  every: positive.default(1).describe('epochs between validations'),
  metric: z
    .string()
    .regex(/^(hr|ndcg)@[1-9]\d*$|^mrr$|^loglik$/, 'must be hr@k, ndcg@k, mrr or loglik')
    .default('ndcg@10')
    .describe(
      'metric for early stopping and the best checkpoint; loglik is the mean log-likelihood of the held-out events',
    ),
  patience: positive.optional().describe('stop after this many validations without improvement'),
  exclude: z
    .enum(['history', 'input', 'none'])
    .default('history')
    .describe('excluded from the ranking: all earlier items, those the model read, or nothing'),
  cutoffs: z
    .array(positive)
    .min(1)
    .default([1, 5, 10, 20, 50, 100, 200])
    .describe('the k of HR@k, NDCG@k and recall@k'),
  on: z
    .enum(['validation', 'test'])
    .default('validation')
    .describe('events that choose the epoch; test, as in published tables, is marked in the report'),
  targets: positive.default(1).describe('held-out events to predict per user, oldest first (leave-one-out has one)'),
  users: positive.optional().describe('validate on this many users, always the same (default: all)'),
});

const checkpoint = z.strictObject({
  every: positive.optional().describe('steps between checkpoints, besides those at the end of each epoch'),
  minutes: z
    .number()
    .positive()
    .default(5)
    .describe('minutes between checkpoints, besides those at the end of each epoch'),
  keep: positive.default(2).describe('newest checkpoints to keep, in addition to the best one'),
});

export const configSchema = z.strictObject({
  recipe: z.string().optional().describe('named config to start from; explicit keys override it'),
  seed: whole.min(0).max(Number.MAX_SAFE_INTEGER).default(1).describe('same seed, same data: same weights'),
  threads: positive.max(1024).optional().describe('worker threads (default: all cores). Does not affect results'),
  model: model.prefault({}),
  loss: loss.prefault({}),
  optimizer: optimizer.prefault({}),
  batch: z
    .union([z.strictObject({ tokens: positive, lanes }), z.strictObject({ users: positive, lanes })])
    .prefault({ tokens: 8192 })
    .describe('size of a lane, as a token budget or a number of sequences, and the number of lanes per step'),
  overlap: z
    .enum(['on', 'off'])
    .default('on')
    .describe('overlap sparse work of one lane with computing another. Does not affect results'),
  pipeline: positive
    .max(6)
    .default(2)
    .describe(
      'lanes in flight with overlap on: one computes while rows of the others are fetched. Does not affect results',
    ),
  checkReplicas: positive
    .default(100)
    .describe('steps between two checks that replicas on several ranks are equal. Does not affect results'),
  mapTables: z
    .boolean()
    .default(false)
    .describe(
      'keep the item table and its optimiser state in memory-mapped files, so they may exceed memory. Does not affect results',
    ),
  staleness: z
    .union([z.literal([0, 1, 2]), z.literal('exact')])
    .default(0)
    .describe(
      'updates that item rows may miss, so that fetching them is hidden; exact: fetched one step early, changed rows again, with the results of 0',
    ),
  wire: z
    .enum(['f32', 'f16'])
    .default('f32')
    .describe(
      'format in which item rows are sent between ranks in training: f16 halves the bytes and rounds the rows, equally for any number of ranks',
    ),
  groupSize: positive
    .max(65_536)
    .optional()
    .describe('ranks that a large table is sharded over (default: those of a node). Does not affect results'),
  window: z
    .enum(['latest', 'sliding'])
    .default('latest')
    .describe('histories longer than maxLength: newest events only, or windows that cover all'),
  trainOn: z
    .enum(['train', 'train+validation'])
    .default('train')
    .describe('train+validation also trains on the validation events, so no epoch can be chosen by them'),
  trainUsers: positive
    .optional()
    .describe('train on this many users only (default: all); smaller sets are subsets of larger ones, for any seed'),
  trainSince: whole
    .min(0)
    .optional()
    .describe(
      'train only on users with a training event at or after this time, in the unit of the log (default: all users)',
    ),
  epochs: positive.default(20),
  priors: z
    .union([z.enum(['auto', 'off']), PRIOR_WEIGHTS])
    .default('off')
    .describe(
      "add the log's priors (popularity, successors, own items) to the logits, with weights fitted on validation (auto) or given, as `turbogr refit` does",
    ),
  maxSteps: positive.optional().describe('stop after this many optimiser steps'),
  evaluation: evaluation.prefault({}),
  checkpoint: checkpoint.prefault({}),
});

/** User input: every key optional. */
export type ConfigInput = z.input<typeof configSchema>;
/** The `model` part of user input. */
export type ModelInput = NonNullable<ConfigInput['model']>;
/** Every key present; see `resolveConfig` for the derived ones. */
export type Config = z.output<typeof configSchema>;
export type ModelConfig = Config['model'] & { dqk: number; dv: number };
export type LossConfig = Config['loss'];
export type OptimizerConfig = Config['optimizer'];
export type ResolvedConfig = Config & { model: ModelConfig };

/** JSON Schema (2020-12) of a config file, for editors. */
export function configJsonSchema(): object {
  return z.toJSONSchema(configSchema, { io: 'input' });
}
