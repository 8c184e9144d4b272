// Named configs: published settings, and our own where nothing is published. Any key of a recipe can be overridden.

import type { ConfigInput, ModelInput } from './schema.js';

/** Shared by the public MovieLens recipes: 128 users per batch, 101 epochs, AdamW without decay or warm-up. */
function movieLens(model: ModelInput): ConfigInput {
  return {
    model: { maxLength: 200, outputSlots: 11, dropout: 0.2, ...model },
    loss: { kind: 'sampled-softmax', temperature: 0.05, negatives: { kind: 'uniform', count: 128 } },
    optimizer: { lr: 1e-3, beta1: 0.9, beta2: 0.98, table: 'adamw' },
    batch: { users: 128 },
    window: 'latest',
    epochs: 101,
    evaluation: { exclude: 'input' },
  };
}

const PAPER_SIZES = ['tiny', 'small', 'medium', 'large', 'long'] as const;

/**
 * The TurboGR paper's settings: AdamW with lr 4e-3 and no decay, row-wise AdaGrad on the tables, dropout 0.5 on linear
 * layers, sampled softmax with 128 negatives, 200 epochs, batches by tokens. HSTU has 32 time buckets, FuXi the function
 * of FuXi-gamma. Two deviations, for stability at that rate: gradients are clipped to norm 1 (`optimizer.clip`), and the
 * rate warms up over 1,000 steps (`optimizer.schedule.warmup`).
 */
function paper(kind: 'hstu' | 'fuxi' | 'sasrec', size: (typeof PAPER_SIZES)[number]): ConfigInput {
  const length = size === 'long' ? 4096 : 2048;
  const models: Record<typeof kind, ModelInput> = {
    hstu: { timeBias: 'buckets', timeBuckets: 32 },
    // The paper reports the same number of parameters for lengths 2,048 and 4,096: its position bias covers 4,096 in both.
    fuxi: { timeBias: 'power', outputSlots: 4096 - length },
    sasrec: {},
  };
  return {
    model: { kind, size, dropout: 0.5, ...models[kind] },
    optimizer: { lr: 4e-3, table: 'row-adagrad', clip: 1, schedule: { kind: 'constant', warmup: 1000 } },
    loss: { kind: 'sampled-softmax', negatives: { kind: 'uniform', count: 128 } },
    batch: { tokens: 16_384 },
    epochs: 200,
  };
}

/** `paper-hstu-tiny` to `paper-sasrec-long`. */
const PAPER_RECIPES = Object.fromEntries(
  (['hstu', 'fuxi', 'sasrec'] as const).flatMap(kind =>
    PAPER_SIZES.map((size): [string, ConfigInput] => [`paper-${kind}-${size}`, paper(kind, size)]),
  ),
);

/** Names in earlier versions, and their replacements. */
export const RENAMED_RECIPES: Readonly<Record<string, string>> = {
  'hstu-large': 'paper-hstu-large',
  'hstu-long': 'paper-hstu-long',
  'fuxi-large': 'paper-fuxi-large',
  'fuxi-long': 'paper-fuxi-long',
};

export const RECIPES: Record<string, ConfigInput> = {
  // The schema's defaults for every log: no rule is applied.
  plain: {},
  'ml-1m-sasrec': movieLens({ kind: 'sasrec', d: 50, blocks: 2, heads: 1, attentionDropout: 0.2 }),
  // The SASRec of the published table: see src/nn/sasrec-meta.ts.
  'ml-1m-sasrec-meta': movieLens({
    kind: 'sasrec',
    variant: 'meta',
    d: 50,
    blocks: 2,
    heads: 1,
    attentionDropout: 0.2,
  }),
  'ml-1m-hstu': movieLens({ kind: 'hstu', d: 50, blocks: 2, heads: 1 }),
  'ml-1m-hstu-large': movieLens({ kind: 'hstu', d: 50, blocks: 8, heads: 2 }),
  'ml-1m-fuxi': movieLens({ kind: 'fuxi', d: 50, blocks: 2, heads: 1 }),
  'ml-1m-fuxi-large': movieLens({ kind: 'fuxi', d: 50, blocks: 8, heads: 2 }),
  // Ours, for quality instead of comparison: docs/results.md.
  'ml-1m-best': {
    model: { kind: 'hstu', d: 128, blocks: 16, heads: 4, maxLength: 200, dropout: 0.2 },
    loss: { kind: 'full-softmax', temperature: 0.05 },
    optimizer: { lr: 2e-3, table: 'adamw', schedule: { kind: 'cosine', warmup: 80 } },
    batch: { tokens: 8192 },
    window: 'sliding',
    epochs: 14,
    priors: 'auto',
  },
  'ml-20m-hstu': movieLens({ kind: 'hstu', d: 256, blocks: 4, heads: 4 }),
  'ml-20m-hstu-large': movieLens({ kind: 'hstu', d: 256, blocks: 16, heads: 8 }),
  'kuairand-27k-hstu': {
    ...movieLens({ kind: 'hstu', d: 128, blocks: 4, heads: 4, dqk: 32, dv: 128, maxLength: 1024, dropout: 0.5 }),
    optimizer: { lr: 1e-3, beta2: 0.98, table: 'lazy-adam' },
  },
  // KuaiRand-Pure's standard log: many short histories, times in ms.
  'kuairand-pure-hstu': {
    model: { kind: 'hstu', d: 64, blocks: 2, heads: 2, maxLength: 50, dropout: 0.3 },
    batch: { tokens: 4096 },
    epochs: 40,
    evaluation: { patience: 5 },
  },
  // Which maintainer changed which package: very long histories, mostly repeated targets, so nothing is left out of the ranking.
  'package-log-hstu': {
    model: { kind: 'hstu', d: 64, blocks: 2, heads: 2, maxLength: 512, dropout: 0.2 },
    optimizer: { lr: 2e-3, table: 'lazy-adam' },
    batch: { tokens: 8192 },
    epochs: 15,
    evaluation: { exclude: 'none', patience: 3 },
  },
  ...PAPER_RECIPES,
};
