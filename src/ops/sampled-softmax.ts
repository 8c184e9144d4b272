// Sampled softmax: mean over trained tokens of -l+ + log(e^l+ + sum over r of e^l_r), with an optional logQ correction
// (l -= logq[item], for positive and negatives alike) when negatives are not drawn uniformly.

import type { Tensor } from '../tensor/tensor.js';
import { type SampledOptions, sampledLoss } from './sampled-loss.js';
import type { Table } from './table.js';
import type { Tape } from './tape.js';

export interface SampledSoftmaxOptions extends SampledOptions {
  /** Log of each item's probability of being drawn. */
  logq?: Tensor<'f32'>; // [V]
}

export function sampledSoftmax(
  tape: Tape,
  u: Tensor<'f32'>,
  table: Table,
  options: SampledSoftmaxOptions,
): Tensor<'f32'> {
  return sampledLoss(tape, { op: 'sampled_softmax', u, table, options, extra: call => call.tensor(options.logq) });
}
