// What a model is to the trainer: its parameters by name, and how they turn embedded events into states. Anything of
// this shape trains, evaluates, resumes and exports like the built-in models.
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
  /** Where the sequences begin, and when things happened. */
  tokens: JaggedTokens;
  weights: Weights;
}

export interface ModelDefinition {
  readonly kind: string;
  /** D. */
  readonly d: number;
  /** Longest sequence, in events. */
  readonly maxLength: number;
  /** Parameters of the blocks; the tables and positions of the input are added by the model. */
  readonly parameters: readonly ParameterSpec[];
  /** [T, D] states: the row of an event predicts the one after it. */
  forward(input: ForwardInput): Tensor<'f32'>;
  /** Useful FLOPs of forward and backward on one sequence of n events; only real, causal work counts. */
  flops(n: number): number;
}
