// The search space of `tune`: settings whose best value does not follow from statistics of the log. Values are ascending and
// include those of the rules.

import { Random } from '../util/random.js';
import type { UncheckedConfig } from './resolve.js';

/** Heads follow from the width, so that each is at least 32 wide. */
const WIDTHS = [
  { d: 32, heads: 1 },
  { d: 64, heads: 1 },
  { d: 64, heads: 2 },
  { d: 128, heads: 2 },
];
const SPACE = {
  blocks: [1, 2, 4, 8],
  dropout: [0.1, 0.2, 0.3, 0.5],
  lr: [5e-4, 1e-3, 2e-3, 4e-3],
  temperature: [0.03, 0.05, 0.08, 0.12],
  kind: ['full-softmax', 'sampled-softmax'],
  negatives: [128, 256, 512],
  ema: [undefined, 0.99, 0.998],
  smoothing: [0, 0.1, 0.2],
} as const;

/** The first candidate is the rules' choice; the others are drawn, deterministically by seed. */
export function drawCandidates(count: number, seed: number): UncheckedConfig[] {
  const random = new Random(seed, 'candidates');
  const one = <T>(values: readonly T[]): T => values[random.below(values.length)]!;
  return Array.from({ length: count }, (_, i) => {
    if (i === 0) return {};
    const kind = one(SPACE.kind);
    const ema = one(SPACE.ema);
    const negatives = one(SPACE.negatives);
    const smoothing = one(SPACE.smoothing);
    return {
      model: { ...one(WIDTHS), blocks: one(SPACE.blocks), dropout: one(SPACE.dropout) },
      optimizer: { lr: one(SPACE.lr), ...(ema !== undefined && { ema }) },
      loss: {
        kind,
        temperature: one(SPACE.temperature),
        ...(kind === 'sampled-softmax' ? { negatives: { count: negatives } } : { smoothing }),
      },
    };
  });
}
