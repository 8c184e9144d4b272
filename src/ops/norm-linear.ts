// y[T, N] = act(drop(norm(x[T, D])) W[D, N] + b): the input projection of every block, the first half of a feed-forward.
//
// T tokens, D input width, N output width.

import { type Layout, PANEL, type Tensor } from '../tensor/tensor.js';
import type { Parameter } from './parameter.js';
import { expectShape } from './shape-rule.js';
import type { Tape } from './tape.js';

/** In the order of the addon's numbers. */
export const NORMS = ['none', 'layer', 'rms'] as const;
export const ACTS = ['none', 'silu', 'relu'] as const;
export type Norm = (typeof NORMS)[number];
export type Act = (typeof ACTS)[number];

export const NORM_EPS = 1e-6;

export interface NormLinearOptions {
  norm?: Norm;
  eps?: number;
  act?: Act;
  /** Drop probability of the normed input. */
  dropout?: number;
  /** [1, N] */
  bias?: Parameter;
  /** Widths of the attention heads in y, if any: y is then laid out so that attention can read them in place. */
  headWidths?: readonly number[];
}

/** Layout of a projection with heads of these widths: panels, unless a panel would span two heads. */
export function headLayout(widths: readonly number[]): Layout {
  return widths.length > 0 && widths.every(width => width % PANEL === 0) ? 'panels' : 'rows';
}

export function normLinear(tape: Tape, x: Tensor<'f32'>, w: Parameter, options: NormLinearOptions = {}): Tensor<'f32'> {
  const { norm = 'none', act = 'none', eps = NORM_EPS, bias, headWidths = [] } = options;
  const { device } = tape;
  const [tokens, width] = [x.rows, w.value.cols];
  expectShape('norm_linear', 'w', w.value, x.cols, width);
  if (bias) expectShape('norm_linear', 'bias', bias.value, 1, width);
  const dropout = tape.dropout(options.dropout ?? 0);
  const y = tape.output(tokens, width, headLayout(headWidths));
  const stats = device.tensor([tokens, 2]);
  const z = act === 'silu' && tape.training ? device.tensor(y.shape, 'f32', y.layout) : undefined;
  const weight = tape.weight(w, 'forward');
  device
    .call('norm_linear_forward')
    .tensor(x)
    .number(NORMS.indexOf(norm))
    .number(eps)
    .dropout(dropout)
    .tensor(weight)
    .tensor(bias?.value)
    .number(ACTS.indexOf(act))
    .tensor(y)
    .tensor(z)
    .tensor(stats)
    .submit();
  tape.record({
    outputs: [y],
    saved: z ? [z, stats] : [stats],
    backward() {
      const dy = tape.grad(y);
      const dx = tape.gradTarget(x);
      const dw = w.gradTarget();
      const db = bias?.gradTarget();
      const transposed = tape.weight(w, 'backward');
      device
        .call('norm_linear_backward')
        .tensor(x)
        .number(NORMS.indexOf(norm))
        .dropout(dropout)
        .tensor(transposed)
        .number(ACTS.indexOf(act))
        .tensor(act === 'relu' ? y : z)
        .tensor(stats)
        .tensor(dy)
        .grad(dx)
        .grad(dw)
        .grad(db)
        .submit();
    },
  });
  return y;
}
