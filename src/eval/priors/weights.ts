// The weights of a scorer by name, as they are fitted, stored with the run and printed: of the model's logit, of the
// features of every item, of the sparse features.

import { z } from 'zod';
import { ITEM_FEATURES, SPARSE_FEATURES } from './log-priors.js';

export const FEATURES = ['model', ...ITEM_FEATURES, ...SPARSE_FEATURES] as const;

export const PRIOR_WEIGHTS = z.record(z.enum(FEATURES), z.number());
export type PriorWeights = z.infer<typeof PRIOR_WEIGHTS>;

export function namedWeights(values: Float64Array): PriorWeights {
  return PRIOR_WEIGHTS.parse(Object.fromEntries(FEATURES.map((name, f) => [name, values[f]!])));
}

export function listedWeights(weights: PriorWeights): Float64Array {
  return Float64Array.from(FEATURES, name => weights[name]);
}
