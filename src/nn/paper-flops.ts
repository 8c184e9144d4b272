// FLOPs of forward and backward on one sequence as the TurboGR paper counts them: 6 P n + 12 D L n², FuXi twice the second
// term; attention is not halved for causality. `ModelDefinition.flops` counts useful work instead.
//
// P parameters of the blocks, n events, D model width, L blocks.

/** Attention in units of 12 D L n²; FuXi has three value products. */
const ATTENTION: Readonly<Record<string, number>> = { hstu: 1, sasrec: 1, fuxi: 2 };

export interface CountedModel {
  kind: string;
  d: number;
  blocks: number;
  /** P */
  parameters: number;
}

/** Undefined for a custom model, which the paper does not cover. */
export function paperFlops({ kind, d, blocks, parameters }: CountedModel): ((n: number) => number) | undefined {
  const factor = ATTENTION[kind];
  if (factor === undefined) return undefined;
  const attention = 12 * d * blocks * factor;
  return n => 6 * parameters * n + attention * n * n;
}
