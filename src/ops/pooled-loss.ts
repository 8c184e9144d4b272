// Sampled losses with one pool of negatives for all tokens: logits and gradients are matrix products.
//
// T tokens, D width, V items, P rows of the pool.

import type { Tensor } from '../tensor/tensor.js';
import { type Segments, writeFetched } from './fetch-negatives.js';
import { type MaskedEvents, writeMask } from './mask-negatives.js';
import { LEAST_LENGTH, type LogitOptions, writeLogit } from './sampled-loss.js';
import { type SampledObjective, writeObjective } from './shared-loss.js';
import { expectSize } from './shape-rule.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

export interface PooledLossOptions extends LogitOptions {
  positives: Tensor<'i32'>; // [T], -1: this token is not trained
  /** Distinct ids, ascending, padded with -1; see drawPool. */
  pool: Tensor<'i32'>; // [1, P]
  /** A single segment with the pool's rows; default: rows are read from the source. */
  segments?: Segments | undefined;
  objective: SampledObjective;
  /** If given, items of the token's own sequence are masked too. */
  history?: MaskedEvents | undefined;
}

/** The mean loss, a scalar that lives as long as the tape. Its gradients are computed at once; `tape.backward` propagates them. */
export function pooledLoss(tape: Tape, u: Tensor<'f32'>, rows: RowSource, options: PooledLossOptions): Tensor<'f32'> {
  const { device } = tape;
  const { positives, pool, objective, history } = options;
  expectSize('pooled_loss', 'positives', positives, u.rows);
  const loss = tape.result([1, 1]);
  const du = tape.someTarget(u);
  const dpool = device.tensor([pool.size, u.cols]);
  const coef = device.tensor([u.rows, 1]);
  const uhat = device.tensor(u.shape);
  for (const { fetched } of options.segments ?? [{ fetched: undefined }]) {
    const call = device.call('pooled_loss').tensor(u).tensor(rows.value).number(rows.vocabulary);
    writeFetched(call.tensor(positives).tensor(pool), fetched);
    writeObjective(writeMask(call, history), objective);
    writeLogit(call, options).tensor(loss).grad(du).tensor(dpool).tensor(coef).tensor(uhat).submit();
  }
  if (!tape.training) {
    for (const tensor of [dpool, coef, uhat]) tensor.dispose();
    return loss;
  }
  for (const tensor of [dpool, coef, uhat]) tape.own(tensor);
  const normalized = options.normalizeItem && { normalizedEps: options.eps ?? LEAST_LENGTH };
  rows.contribute({ ids: positives, source: uhat, coef, scale: 1, ...normalized });
  rows.contribute({ ids: pool, source: dpool, scale: 1, ...normalized, rounded: options.segments?.rounded });
  return loss;
}
