// [T, D] rows of a matrix by id, without gradients: for evaluation and serving.
//
// V rows, T ids, D width.

import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';
import type { Tape } from './tape.js';

/** Rows times `scale`; freed with the tape's scope like any activation. */
export function gatherRows(tape: Tape, values: Tensor<RowDtype>, ids: Tensor<'i32'>, scale = 1): Tensor<'f32'> {
  const rows = tape.output(ids.size, values.cols);
  tape.device
    .call('embedding_gather_forward')
    .tensor(values)
    .tensor(ids)
    .number(scale)
    .tensor(undefined)
    .tensor(undefined)
    .dropout(undefined)
    .flag(false)
    .tensor(rows)
    .submit();
  return rows;
}
