// Generalised BCE (Petrov & Macdonald, gSASRec, RecSys '23): raises the positive's probability to the power beta, which
// corrects the overconfidence caused by negative sampling.

import type { Tensor } from '../tensor/tensor.js';
import { type SampledOptions, sampledLoss } from './sampled-loss.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

export interface GbceOptions extends SampledOptions {
  /** Calibration in [0, 1]: 0 is plain BCE. */
  t: number;
}

export function gbce(tape: Tape, u: Tensor<'f32'>, rows: RowSource, options: GbceOptions): Tensor<'f32'> {
  return sampledLoss(tape, { op: 'gbce', u, rows, options, extra: call => call.number(options.t) });
}
