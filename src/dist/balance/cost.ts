// Training cost of a sequence, and the load imbalance of an assignment of sequences to ranks.
//
// n tokens of a sequence; cost = a n + b n^2: per-token work plus causal attention. Only the ratio b / a affects the
// balance.

export interface CostModel {
  /** Per token. */
  a: number;
  /** Per token pair. */
  b: number;
}

export function sequenceCost(tokens: number, { a, b }: CostModel): number {
  return tokens * (a + b * tokens);
}

/** FLOPs of forward and backward: 6 P n + 6 D L n^2 c, with c = 1 for HSTU (causal half counted), 2 for FuXi. */
export function flopCost(model: { parameters: number; width: number; blocks: number; channels?: number }): CostModel {
  return { a: 6 * model.parameters, b: 6 * model.width * model.blocks * (model.channels ?? 1) };
}

/** The cost model of a FLOP count of the form f(n) = a n + b n^2. */
export function costOf(flops: (length: number) => number): CostModel {
  const b = (flops(2) - 2 * flops(1)) / 2;
  return { a: flops(1) - b, b };
}

export interface Loads {
  /** [W] cost of each rank. */
  cost: Float64Array;
  /** [W] tokens of each rank. */
  tokens: Float64Array;
}

/** Loads of W ranks when sequence i, of lengths[i] tokens, is computed by owner[i]. */
export function loadsOf(lengths: Int32Array, owner: Int32Array, ranks: number, model: CostModel): Loads {
  const loads = { cost: new Float64Array(ranks), tokens: new Float64Array(ranks) };
  for (let i = 0; i < lengths.length; i++) {
    loads.cost[owner[i]!]! += sequenceCost(lengths[i]!, model);
    loads.tokens[owner[i]!]! += lengths[i]!;
  }
  return loads;
}

/** Share of the step that the average rank spends waiting for the slowest: 1 - mean / max. */
export function waitingShare(cost: Float64Array): number {
  const slowest = Math.max(...cost);
  return slowest === 0 ? 0 : 1 - cost.reduce((sum, c) => sum + c, 0) / cost.length / slowest;
}

export function largestDifference(values: Float64Array): number {
  return Math.max(...values) - Math.min(...values);
}
