// Names of the features that the log's priors use, and their sparse part for one history.
//
//   item features   of every item, independent of the user: popularity, recent popularity, and the mixture's `base`
//   own items       of a user's earlier items: how long ago (counted in distinct items), how often, whether it is the last
//   successors      of items that followed the last ones: directly or soon, in all histories or in this user's
//   mixture         the log-probability that the sparse components add to `base`
//
// The components are distributions over the catalogue: sparse ones first, the last three over all items.

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
] as const;
export const COMPONENTS = [...SPARSE_COMPONENTS, 'popularity', 'recentPopularity', 'uniform'] as const;

const F = SPARSE_FEATURES.length;
const K = SPARSE_COMPONENTS.length;

/** Features of one history; unlisted items have zeros. */
export class SparseFeatures {
  /** [n] distinct items. */
  readonly items: number[] = [];
  /** [n * F]. The mixture's feature is 0 here: it follows from `parts` and the shares. */
  readonly values: number[] = [];
  /** [n * K] probabilities under the sparse components. */
  readonly parts: number[] = [];
  readonly #rows = new Map<number, number>();

  /** The row of an item, if it has one. */
  find(item: number): number | undefined {
    return this.#rows.get(item);
  }

  row(item: number): number {
    let row = this.#rows.get(item);
    if (row === undefined) {
      row = this.items.length;
      this.#rows.set(item, row);
      this.items.push(item);
      for (let f = 0; f < F; f++) this.values.push(0);
      for (let k = 0; k < K; k++) this.parts.push(0);
    }
    return row;
  }
}
