// Exact sums as tests make and read them (native/kernels/src/exact_sum.rs).

import { EXACT_WORDS } from '../../src/ops/square-sum.js';

/** A sum of 0. */
export const ZERO = (): BigInt64Array => new BigInt64Array(EXACT_WORDS);

/** A sum with a summand that is not finite. */
export function notFiniteSum(): BigInt64Array {
  const words = ZERO();
  words[EXACT_WORDS - 1] = 1n;
  return words;
}

export function valueOf(words: BigInt64Array): number {
  return words.subarray(0, -1).reduce((sum, word, k) => sum + Number(word) * 2 ** (32 * k - 320), 0);
}
