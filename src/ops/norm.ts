// y[T, D] = norm(x) * gain + shift, gain and shift optional. Inside a block the norm is fused with the following product
// (normLinear); this is the separate op, for example for a model's last layer.
//
// T tokens, D width.

import type { Tensor } from '../tensor/tensor.js';
import { NORM_EPS, NORMS } from './norm-linear.js';
import type { Parameter } from './parameter.js';
import { expectShape } from './shape-rule.js';
import type { Tape } from './tape.js';

export interface NormOptions {
  norm: 'layer' | 'rms';
  eps?: number;
  /** [1, D] */
  gain?: Parameter;
  /** [1, D] */
  shift?: Parameter;
}

export function norm(tape: Tape, x: Tensor<'f32'>, options: NormOptions): Tensor<'f32'> {
  const { gain, shift, eps = NORM_EPS } = options;
  const { device } = tape;
  const kind = NORMS.indexOf(options.norm);
  if (gain) expectShape('norm', 'gain', gain.value, 1, x.cols);
  if (shift) expectShape('norm', 'shift', shift.value, 1, x.cols);
  const y = tape.output(x.rows, x.cols);
  const stats = device.tensor([x.rows, 2]);
  device
    .call('norm_forward')
    .tensor(x)
    .number(kind)
    .number(eps)
    .tensor(gain?.value)
    .tensor(shift?.value)
    .tensor(y)
    .tensor(stats)
    .submit();
  tape.record({
    outputs: [y],
    saved: [stats],
    backward() {
      const dy = tape.grad(y);
      const dx = tape.gradTarget(x);
      const dgain = gain?.gradTarget();
      const dshift = shift?.gradTarget();
      device
        .call('norm_backward')
        .tensor(x)
        .number(kind)
        .tensor(gain?.value)
        .tensor(stats)
        .tensor(dy)
        .grad(dx)
        .grad(dgain)
        .grad(dshift)
        .submit();
    },
  });
  return y;
}
