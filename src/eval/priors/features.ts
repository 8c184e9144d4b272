// Names of what the log knows of a next event, and the sparse part of it for one history.
//
//   item features   of every item, whoever asks: how popular it is, and was lately; `base` is the mixture's part of them
//   own items       of a user's earlier items: how long ago (counted in different items), how often, right now
//   successors      of items that followed the last ones: at once or soon, in everybody's history or in this user's own
//   mixture         how much more probable the components of the mixture make an item than `base` does
//
// The components are distributions over the catalogue: the first of them sparse, the last three of every item.

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

/** Named after the oldest of the places in the history that they look from. */
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

/** Of one history; all items that are not listed have zeros. */
export class SparseFeatures {
  /** [n] different items. */
  readonly items: number[] = [];
  /** [n * F] The mixture's own feature is 0: it follows from `parts` and the shares. */
  readonly values: number[] = [];
  /** [n * K] probabilities that the sparse components give. */
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
