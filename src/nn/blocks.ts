// What the built-in models share: equal blocks, one after the other, and the work they do.

import type { Parameter } from '../ops/parameter.js';
import type { Tensor } from '../tensor/tensor.js';
import type { ForwardInput } from './definition.js';
import { countParameters, type ParameterSpec } from './parameter-spec.js';

/** The parameters of block l by their names inside a block. */
export type BlockWeights = (name: string) => Parameter;

/** [T, D] through every block; what a block leaves behind besides its result is freed with its scope. */
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
 * Useful FLOPs of forward and backward by length of the sequence: every matrix once per token, and causal attention, whose
 * products have `attentionWidth` columns in all.
 */
export function causalFlops(
  parameters: readonly ParameterSpec[],
  blocks: number,
  attentionWidth: number,
): (length: number) => number {
  const matrices = countParameters(parameters.filter(spec => spec.rows > 1));
  return length => 6 * matrices * length + 3 * blocks * attentionWidth * length * (length + 1);
}
