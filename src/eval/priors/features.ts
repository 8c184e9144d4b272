// The sparse part of the priors' features for one history; their names are those of config/prior-weights.ts.

import { SPARSE_COMPONENTS, SPARSE_FEATURES } from '../../config/prior-weights.js';

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
