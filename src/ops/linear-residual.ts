// y[T, N] = dropOut(dropIn(x[T, D]) W[D, N] + b) + residual[T, N]: the second half of a ReLU feed-forward, the output
// projection of softmax attention.
//
// T tokens, D input width, N output width.

import type { Tensor } from '../tensor/tensor.js';
import type { Parameter } from './parameter.js';
import { expectShape } from './shape-rule.js';
import type { Tape } from './tape.js';

export interface LinearResidualOptions {
  /** [1, N] */
  bias?: Parameter;
  /** Drop probability of the input. */
  dropIn?: number;
  /** Drop probability of the product, before the residual. */
  dropOut?: number;
}

export function linearResidual(
  tape: Tape,
  { x, residual }: { x: Tensor<'f32'>; residual: Tensor<'f32'> },
  w: Parameter,
  options: LinearResidualOptions = {},
): Tensor<'f32'> {
  const { bias } = options;
  const { device } = tape;
  const width = w.value.cols;
  expectShape('linear_residual', 'w', w.value, x.cols, width);
  expectShape('linear_residual', 'residual', residual, x.rows, width);
  if (bias) expectShape('linear_residual', 'bias', bias.value, 1, width);
  const dropIn = tape.dropout(options.dropIn ?? 0);
  const dropOut = tape.dropout(options.dropOut ?? 0);
  const y = tape.output(x.rows, width);
  const weight = tape.weight(w, 'forward');
  device
    .call('linear_residual_forward')
    .tensor(x)
    .dropout(dropIn)
    .tensor(weight)
    .tensor(bias?.value)
    .dropout(dropOut)
    .tensor(residual)
    .tensor(y)
    .submit();
  tape.record({
    outputs: [y],
    backward() {
      const dy = tape.grad(y);
      const dx = tape.someTarget(x);
      const dw = w.gradTarget();
      const db = bias?.gradTarget();
      const transposed = tape.weight(w, 'backward');
      device
        .call('linear_residual_backward')
        .tensor(x)
        .dropout(dropIn)
        .tensor(transposed)
        .dropout(dropOut)
        .tensor(dy)
        .grad(dx)
        .grad(dw)
        .grad(db)
        .submit();
      tape.passGrad(y, residual);
    },
  });
  return y;
}
