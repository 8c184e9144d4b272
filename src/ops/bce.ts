// Binary cross-entropy: mean over trained tokens of (softplus(-l+) + sum over r of softplus(l_r)) / (R + 1).

import type { Tensor } from '../tensor/tensor.js';
import { type SampledOptions, sampledLoss } from './sampled-loss.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

export function bce(tape: Tape, u: Tensor<'f32'>, rows: RowSource, options: SampledOptions): Tensor<'f32'> {
  return sampledLoss(tape, { op: 'bce', u, rows, options, extra: call => call });
}
