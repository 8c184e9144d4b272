// Mixed negatives: how many of a token's R draws come from each kind, and the probability of an item under the mixture.
//
// R draws per token, V items.

export interface Shares {
  readonly uniform: number;
  readonly popularity: number;
  readonly inBatch: number;
}

/** Splits R into three integers, as close to the shares as possible; the shares need not sum to 1. */
export function splitCount(count: number, { uniform, popularity, inBatch }: Shares): [number, number, number] {
  const total = uniform + popularity + inBatch;
  const first = Math.round((count * uniform) / total);
  const second = Math.round((count * (uniform + popularity)) / total);
  return [first, second - first, count - second];
}

/** [V] log of each item's probability under the mixture of uniform, weighted and in-batch draws (by training counts). */
export function logOfMixture(shares: Shares, counts: Int32Array, weights: Float32Array): Float32Array {
  const total = shares.uniform + shares.popularity + shares.inBatch;
  const sum = (values: Iterable<number>): number => {
    let all = 0;
    for (const value of values) all += value;
    return all;
  };
  const events = sum(counts.map(count => Math.max(1, count)));
  const weighted = sum(weights);
  return Float32Array.from(counts, (count, item) =>
    Math.log(
      (shares.uniform / counts.length +
        (shares.popularity * weights[item]!) / weighted +
        (shares.inBatch * Math.max(1, count)) / events) /
        total,
    ),
  );
}
