// Binary cross-entropy: mean over trained tokens of (softplus(-l+) + sum over r of softplus(l_r)) / (R + 1).

import type { Tensor } from '../tensor/tensor.js';
import { type SampledOptions, sampledLoss } from './sampled-loss.js';
import type { Table } from './table.js';
import type { Tape } from './tape.js';

export function bce(tape: Tape, u: Tensor<'f32'>, table: Table, options: SampledOptions): Tensor<'f32'> {
  return sampledLoss(tape, { op: 'bce', u, table, options, extra: call => call });
}
