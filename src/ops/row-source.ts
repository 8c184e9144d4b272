// Rows that ops read and differentiate. A row source is a whole table, or rows staged from one for a batch, which ops then
// address by position. Both give the same bits. Gradients are collected as contributions: factors that are summed later.
//
// V rows of the table, U rows of the source, D width. A contribution has T rows of P ids, with k source rows each.

import type { Tensor } from '../tensor/tensor.js';

/** Data type of rows. */
export type RowDtype = 'f32' | 'f16' | 'bf16';

/**
 * Row ids[t, p] gets scale * coef[t, p k + i] * source[t k + i] for all i below k. The tensors must live until the gradient is
 * reduced or applied.
 */
export interface Contribution {
  /** [T, P]; -1 adds nothing. */
  readonly ids: Tensor<'i32'>;
  /** [T k, D] */
  readonly source: Tensor<'f32'>;
  /** k: tokens that share their ids; default 1. */
  readonly members?: number;
  /** [T, P k]; default: all 1. */
  readonly coef?: Tensor<'f32'>;
  readonly scale: number;
  /** Lane of the step, if several lanes are summed at once. */
  readonly lane?: number;
  /** The gradient is with respect to row / max(|row|, this); the normalisation is differentiated after summing. */
  readonly normalizedEps?: number;
  /** The rows were read in FP16. A row that all contributions read in FP16 is rounded before differentiating its norm. */
  readonly rounded?: boolean | undefined;
}

export interface RowSource {
  readonly name: string;
  /** [V, D], or [U, D] when staged. */
  readonly value: Tensor<RowDtype>;
  /** For staged rows: their table rows, ascending, padded with -1. */
  readonly ids?: Tensor<'i32'>; // [U]
  /** V. */
  readonly vocabulary: number;
  /** Adds to the gradient of these rows. */
  contribute(contribution: Contribution): void;
}
