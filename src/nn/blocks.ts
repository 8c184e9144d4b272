// Shared by the built-in models: a stack of equal blocks, and its FLOP count.

import type { Parameter } from '../ops/parameter.js';
import type { Tensor } from '../tensor/tensor.js';
import type { ForwardInput } from './definition.js';
import { countParameters, type ParameterSpec } from './parameter-spec.js';

/** The parameters of a block by their names within it. */
export type BlockWeights = (name: string) => Parameter;

/** Applies all blocks to [T, D]; intermediates of a block are freed with its scope. */
export function throughBlocks(
  { tape, x, weights }: ForwardInput,
  blocks: number,
  block: (x: Tensor<'f32'>, weight: BlockWeights, l: number) => Tensor<'f32'>,
): Tensor<'f32'> {
  for (let l = 0; l < blocks; l++) {
    const before = x;
    x = tape.scope(() => block(before, name => weights(`blocks.${l}.${name}`), l));
  }
  return x;
}

/**
 * Useful FLOPs of forward and backward as a function of sequence length: every matrix once per token, plus causal attention,
 * whose products have `attentionWidth` columns in total.
 */
export function causalFlops(
  parameters: readonly ParameterSpec[],
  blocks: number,
  attentionWidth: number,
): (length: number) => number {
  const matrices = countParameters(parameters.filter(spec => spec.rows > 1));
  return length => 6 * matrices * length + 3 * blocks * attentionWidth * length * (length + 1);
}
