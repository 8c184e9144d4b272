// The weights of a scorer by name, as fitted and stored with the run: of the model's logit, of item and sparse features, and the
// shares of the mixture.

import { z } from 'zod';
import { COMPONENTS, ITEM_FEATURES, SPARSE_FEATURES } from './features.js';

export const FEATURES = ['model', ...ITEM_FEATURES, ...SPARSE_FEATURES] as const;

export const PRIOR_WEIGHTS = z.strictObject({
  features: z.record(z.enum(FEATURES), z.number()),
  shares: z.record(z.enum(COMPONENTS), z.number()),
});
export type PriorWeights = z.infer<typeof PRIOR_WEIGHTS>;

/** `features` in the order of FEATURES, `shares` in that of COMPONENTS. */
export function namedWeights(features: Float64Array, shares: Float64Array): PriorWeights {
  return PRIOR_WEIGHTS.parse({
    features: Object.fromEntries(FEATURES.map((name, f) => [name, features[f]!])),
    shares: Object.fromEntries(COMPONENTS.map((name, k) => [name, shares[k]!])),
  });
}

export function listedFeatures({ features }: PriorWeights): Float64Array {
  return Float64Array.from(FEATURES, name => features[name]);
}

export function listedShares({ shares }: PriorWeights): Float64Array {
  return Float64Array.from(COMPONENTS, name => shares[name]);
}
