// y[T, D] = (silu(h1) * h3) W[m, D] + x[T, D] with h[T, 2m] = [h1 | h3]: the second half of a SwiGLU feed-forward.
//
// T tokens, m inner width, D output width.

import type { Tensor } from '../tensor/tensor.js';
import type { Parameter } from './parameter.js';
import { expectShape } from './shape-rule.js';
import type { Tape } from './tape.js';

export function swigluLinearResidual(
  tape: Tape,
  { h, x }: { h: Tensor<'f32'>; x: Tensor<'f32'> },
  w: Parameter,
): Tensor<'f32'> {
  const { device } = tape;
  const [inner, width] = w.value.shape;
  expectShape('swiglu_linear_residual', 'h', h, h.rows, 2 * inner);
  expectShape('swiglu_linear_residual', 'x', x, h.rows, width);
  const y = tape.output(h.rows, width);
  const weight = tape.weight(w, 'forward');
  device.call('swiglu_linear_residual_forward').tensor(h).tensor(weight).tensor(x).tensor(y).submit();
  tape.record({
    outputs: [y],
    backward() {
      const dy = tape.grad(y);
      const dh = tape.someTarget(h);
      const dw = w.gradTarget();
      const transposed = tape.weight(w, 'backward');
      device.call('swiglu_linear_residual_backward').tensor(h).tensor(transposed).tensor(dy).grad(dh).grad(dw).submit();
      tape.passGrad(y, x);
    },
  });
  return y;
}
