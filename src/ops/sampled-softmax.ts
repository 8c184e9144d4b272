// Sampled softmax: mean over trained tokens of -l+ + log(e^l+ + sum over r of e^l_r), with an optional logQ correction
// (l -= logq[item], for positive and negatives alike) when negatives are not drawn uniformly.

import type { Tensor } from '../tensor/tensor.js';
import { type SampledOptions, sampledLoss } from './sampled-loss.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

export interface SampledSoftmaxOptions extends SampledOptions {
  /** Log of each row's sampling probability. */
  logq?: Tensor<'f32'>; // [U], [V] when rows are the table
}

export function sampledSoftmax(
  tape: Tape,
  u: Tensor<'f32'>,
  rows: RowSource,
  options: SampledSoftmaxOptions,
): Tensor<'f32'> {
  return sampledLoss(tape, { op: 'sampled_softmax', u, rows, options, extra: call => call.tensor(options.logq) });
}
