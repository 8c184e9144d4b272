// A scorer's weights by name and as lists.

import { COMPONENTS, FEATURES, PRIOR_WEIGHTS, type PriorWeights } from '../../config/prior-weights.js';

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
