// y[T, D] = drop(u[T, M] * norm(o[T, M])) W[M, D] + b + x[T, D]: the output of an HSTU or FuXi attention layer.
//
// T tokens, M width of the attention's output, D model width.

import type { Tensor } from '../tensor/tensor.js';
import { NORM_EPS, NORMS } from './norm-linear.js';
import type { Parameter } from './parameter.js';
import { expectShape } from './shape-rule.js';
import type { Tape } from './tape.js';

export interface GatedInputs {
  /** Gate. */
  u: Tensor<'f32'>;
  /** Attention's output. */
  o: Tensor<'f32'>;
  /** Residual. */
  x: Tensor<'f32'>;
}

export interface GatedOptions {
  norm: 'layer' | 'rms';
  eps?: number;
  dropout?: number;
  /** [1, D] */
  bias?: Parameter;
}

export function gatedNormLinearResidual(
  tape: Tape,
  { u, o, x }: GatedInputs,
  w: Parameter,
  options: GatedOptions,
): Tensor<'f32'> {
  const { norm, eps = NORM_EPS, bias } = options;
  const { device } = tape;
  const [tokens, width] = [o.rows, w.value.cols];
  expectShape('gated_norm_linear_residual', 'u', u, tokens, o.cols);
  expectShape('gated_norm_linear_residual', 'w', w.value, o.cols, width);
  expectShape('gated_norm_linear_residual', 'x', x, tokens, width);
  if (bias) expectShape('gated_norm_linear_residual', 'bias', bias.value, 1, width);
  const dropout = tape.dropout(options.dropout ?? 0);
  const y = tape.output(tokens, width);
  const stats = device.tensor([tokens, 2]);
  // Dropout decisions for backward, one bit per element, provided that no two rows share a 64-bit word.
  const mask = dropout && o.cols % 64 === 0 ? device.tensor([1, (tokens * o.cols) / 64], 'i64') : undefined;
  const weight = tape.weight(w, 'forward');
  device
    .call('gated_norm_linear_residual_forward')
    .tensor(u)
    .tensor(o)
    .number(NORMS.indexOf(norm))
    .number(eps)
    .dropout(dropout)
    .tensor(mask)
    .tensor(weight)
    .tensor(bias?.value)
    .tensor(x)
    .tensor(y)
    .tensor(stats)
    .submit();
  tape.record({
    outputs: [y],
    saved: mask ? [stats, mask] : [stats],
    backward() {
      const dy = tape.grad(y);
      const du = tape.someTarget(u);
      const dO = tape.someTarget(o);
      const dw = w.gradTarget();
      const db = bias?.gradTarget();
      const transposed = tape.weight(w, 'backward');
      device
        .call('gated_norm_linear_residual_backward')
        .tensor(u)
        .tensor(o)
        .number(NORMS.indexOf(norm))
        .dropout(dropout)
        .tensor(mask)
        .tensor(transposed)
        .tensor(stats)
        .tensor(dy)
        .grad(du)
        .grad(dO)
        .grad(dw)
        .grad(db)
        .submit();
      tape.passGrad(y, x);
    },
  });
  return y;
}
