// A mixture of the baselines' distributions: p(item) = sum of share_k * p_k(item), with shares found by expectation maximisation
// on held-out events. It adds probabilities where a sum of logarithms multiplies them: an item that followed one of the last
// few items is likely, regardless of the others.
//
// V items, K components, S of them sparse.

import { COMPONENTS, SPARSE_COMPONENTS } from '../../config/prior-weights.js';
import type { SparseFeatures } from './features.js';
import type { LogPriors } from './log-priors.js';

const K = COMPONENTS.length;
const S = SPARSE_COMPONENTS.length;
const ROUNDS = 60;
/** Pseudo-count of cases per component. */
const PRIOR_CASES = 1;

export class Mixture {
  readonly #shares: Float64Array;
  /** [V] probability under the dense components. */
  readonly #base: Float64Array;

  constructor(log: LogPriors, shares: Float64Array) {
    this.#shares = shares;
    this.#base = new Float64Array(log.counts.length);
    log.distributions.forEach((distribution, k) => {
      for (let item = 0; item < this.#base.length; item++) this.#base[item]! += shares[S + k]! * distribution[item]!;
    });
  }

  /** Log-probability of an item without sparse components. */
  base(item: number): number {
    return Math.log(this.#base[item]!);
  }

  /** Increase by the sparse components; the item's `parts` begin at `at`. */
  added(item: number, parts: ArrayLike<number>, at: number): number {
    let sum = 0;
    for (let k = 0; k < S; k++) sum += this.#shares[k]! * parts[at + k]!;
    return Math.log1p(sum / this.#base[item]!);
  }
}

/** [K] probabilities of one item under the components. */
export function componentsOf(log: LogPriors, sparse: SparseFeatures, item: number): Float64Array {
  const row = sparse.find(item);
  return Float64Array.from({ length: K }, (_, k) => {
    if (k >= S) return log.distributions[k - S]![item]!;
    return row === undefined ? 0 : sparse.parts[row * S + k]!;
  });
}

/** [K] shares that maximise the likelihood of the held-out items; `found` has the components by case. */
export function fitShares(found: readonly Float64Array[]): Float64Array {
  let shares = new Float64Array(K).fill(1 / K);
  for (let round = 0; round < ROUNDS; round++) {
    const sums = new Float64Array(K).fill(PRIOR_CASES);
    for (const p of found) {
      let total = 0;
      for (let k = 0; k < K; k++) total += shares[k]! * p[k]!;
      for (let k = 0; k < K; k++) sums[k]! += (shares[k]! * p[k]!) / total;
    }
    shares = sums.map(sum => sum / (found.length + K * PRIOR_CASES));
  }
  return shares;
}
