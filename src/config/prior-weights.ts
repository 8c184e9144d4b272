// The weights of the log's priors by name: of the model's logit, of item and sparse features, and the shares of the mixture.
// Fitted after training and stored with the run, or given by a config.
//
//   item features   of every item, independent of the user: popularity, recent popularity, and the mixture's `base`
//   own items       of a user's earlier items: how long ago (counted in distinct items), how often, whether it is the last
//   successors      of items that followed the last ones: directly or soon, in all histories or in this user's
//   mixture         the log-probability that the sparse components add to `base`
//
// The components are distributions over the catalogue: sparse ones first, the last three over all items. `topSuccessors` is
// `successor1` with probabilities to the fourth power: in a log, part of what follows an item has nothing to do with it.

import { z } from 'zod';

export const ITEM_FEATURES = ['popularity', 'recentPopularity', 'base'] as const;
export const SPARSE_FEATURES = [
  'own',
  'ownAge',
  'ownCount',
  'last',
  'successor',
  'successorShare',
  'context',
  'ownSuccessor',
  'near',
  'mixture',
] as const;

/** Named after the oldest history position that they use. */
export const SPARSE_COMPONENTS = [
  'successor1',
  'successor2',
  'successor3',
  'successor5',
  'successor10',
  'successor20',
  'near1',
  'near2',
  'near6',
  'near12',
  'ownAge',
  'ownCount',
  'ownSuccessor',
  'topSuccessors',
] as const;
export const COMPONENTS = [...SPARSE_COMPONENTS, 'popularity', 'recentPopularity', 'uniform'] as const;

export const FEATURES = ['model', ...ITEM_FEATURES, ...SPARSE_FEATURES] as const;

export const PRIOR_WEIGHTS = z.strictObject({
  features: z.record(z.enum(FEATURES), z.number()),
  shares: z.record(z.enum(COMPONENTS), z.number()),
});
export type PriorWeights = z.infer<typeof PRIOR_WEIGHTS>;
