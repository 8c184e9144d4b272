// The interface between model and trainer: named parameters, and a forward function from embedded events to states. Any
// object of this type trains, evaluates, resumes and exports like the built-in models.
//
// T tokens of the batch, D model width.

import type { Parameter } from '../ops/parameter.js';
import type { JaggedTokens } from '../ops/relative-attention.js';
import type { Tape } from '../ops/tape.js';
import type { Tensor } from '../tensor/tensor.js';
import type { ParameterSpec } from './parameter-spec.js';

/** Parameters by the names of the specs; an unknown name is an error. */
export type Weights = (name: string) => Parameter;

export interface ForwardInput {
  tape: Tape;
  /** [T, D] embedded events. */
  x: Tensor<'f32'>;
  /** Sequence offsets and timestamps. */
  tokens: JaggedTokens;
  weights: Weights;
}

export interface ModelDefinition {
  readonly kind: string;
  /** D. */
  readonly d: number;
  /** Longest sequence, in events. */
  readonly maxLength: number;
  /** Parameters of the blocks; the model adds tables and position embeddings. */
  readonly parameters: readonly ParameterSpec[];
  /** [T, D] states: each row predicts the next event. */
  forward(input: ForwardInput): Tensor<'f32'>;
  /** Useful FLOPs of forward and backward on one sequence of n events; only real, causal work counts. */
  flops(n: number): number;
}
