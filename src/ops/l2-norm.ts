// y[T, D] = x / max(|x|, eps), row by row.
//
// T tokens, D width.

import type { Tensor } from '../tensor/tensor.js';
import { NORM_EPS } from './norm-linear.js';
import type { Tape } from './tape.js';

export function l2Norm(tape: Tape, x: Tensor<'f32'>, { eps = NORM_EPS }: { eps?: number } = {}): Tensor<'f32'> {
  const { device } = tape;
  const y = tape.output(x.rows, x.cols);
  device.call('l2_norm_forward').tensor(x).number(eps).tensor(y).submit();
  tape.record({
    outputs: [y],
    backward() {
      const dy = tape.grad(y);
      const dx = tape.someTarget(x);
      device.call('l2_norm_backward').tensor(x).number(eps).tensor(dy).grad(dx).submit();
    },
  });
  return y;
}
