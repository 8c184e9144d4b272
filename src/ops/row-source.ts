// Rows that ops read and give gradients to. A whole table is a source; so are rows staged from one for a batch, which ops
// then name by place. Both give the same bits. Gradients are not rows but contributions: factors that are summed later.
//
// V rows of the table, U rows of the source, D width, T rows of ids of a contribution, P ids of each, k source rows to it.

import type { Tensor } from '../tensor/tensor.js';

/** How rows are stored. */
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
  /** k, 1 when absent: tokens that share their ids. */
  readonly members?: number;
  /** [T, P k], 1 when absent. */
  readonly coef?: Tensor<'f32'>;
  readonly scale: number;
  /** Which lane of the step it comes from, where several are summed at once. */
  readonly lane?: number;
  /** The gradient is that of row / max(|row|, this), and is taken through it after summing. */
  readonly normalizedEps?: number;
  /** The rows were read in FP16. Those that are read so by all are rounded before a gradient goes through them. */
  readonly rounded?: boolean | undefined;
}

export interface RowSource {
  readonly name: string;
  /** [V, D], or [U, D] when staged. */
  readonly value: Tensor<RowDtype>;
  /** Of staged rows: the table's row that each one is, ascending; -1 beyond the last. */
  readonly ids?: Tensor<'i32'>; // [U]
  /** V. */
  readonly vocabulary: number;
  /** Adds to the gradient of these rows. */
  contribute(contribution: Contribution): void;
}
