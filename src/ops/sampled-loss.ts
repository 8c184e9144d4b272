// Shared by sampledSoftmax, bce and gbce. One pass over a token computes its loss, the gradient of its user vector and the
// coefficients that form the table's gradient together with the user vectors; the T x R x D tensor is never materialised.
//
// T tokens, D width, R negatives per token, V items, U rows of the source.

import type { Call } from '../native/call.js';
import type { Tensor } from '../tensor/tensor.js';
import { type Segments, writeSegment } from './fetch-negatives.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { RowSource } from './row-source.js';
import type { Tape } from './tape.js';

/** Lower bound on the norm when normalising. */
export const LEAST_LENGTH = 1e-6;

export interface LogitOptions {
  /** logit = uhat . ehat / temperature. */
  temperature?: number;
  /** Divide the user vector by max(|u|, eps). */
  normalizeUser?: boolean;
  /** Divide the item row by max(|e|, eps). */
  normalizeItem?: boolean;
  eps?: number;
  /** Divisor of the summed loss; default: the number of trained tokens. */
  meanOver?: number;
}

export interface SampledOptions extends LogitOptions {
  /** -1: this token is not trained. Must live until the gradient is reduced or applied, as must the negatives. */
  positives: Tensor<'i32'>; // [T]
  /** -1, or the positive itself: masked. */
  negatives: Tensor<'i32'>; // [T, R]
  /** Segments of tokens in order, with the rows of their negatives; default: all at once, rows read from the source. */
  segments?: Segments | undefined;
  /** With segments: the positives' rows in the source, if ids are those of the whole table. */
  positiveRows?: Tensor<'i32'> | undefined; // [T]
}

export interface SampledLoss {
  op: 'sampled_softmax' | 'bce' | 'gbce';
  u: Tensor<'f32'>;
  rows: RowSource; // [U, D], [V, D] when it is the table
  options: SampledOptions;
  /** Appends the op's specific arguments. */
  extra: (call: Call) => Call;
}

export function writeLogit(call: Call, options: LogitOptions): Call {
  return call
    .number(options.temperature ?? 1)
    .flag(options.normalizeUser ?? false)
    .flag(options.normalizeItem ?? false)
    .number(options.eps ?? LEAST_LENGTH)
    .number(options.meanOver ?? 0);
}

/** The mean loss, a scalar that lives as long as the tape. Its gradients are computed at once; `tape.backward` propagates them. */
export function sampledLoss(tape: Tape, { op, u, rows, options, extra }: SampledLoss): Tensor<'f32'> {
  const { device } = tape;
  const { positives, negatives, positiveRows } = options;
  const [tokens, width, drawn] = [u.rows, u.cols, negatives.cols];
  expectSize(op, 'positives', positives, tokens);
  expectShape(op, 'negatives', negatives, tokens, drawn);
  expectShape(op, 'rows', rows.value, rows.value.rows, width);
  const loss = tape.result([1, 1]);
  const du = tape.someTarget(u);
  const coef = device.tensor([tokens, 1 + drawn]);
  const uhat = device.tensor([tokens, width]);
  const sum = options.segments && tape.own(device.tensor([1, 1], 'i64'));
  for (const segment of options.segments ?? [{ from: 0, count: tokens }]) {
    const call = device.call(op).tensor(u).tensor(rows.value).number(rows.vocabulary).tensor(positives);
    writeLogit(writeSegment(call.tensor(negatives), segment, { positiveRows, sum }), options);
    extra(call.tensor(loss).grad(du).tensor(coef).tensor(uhat)).submit();
  }
  if (!tape.training) {
    coef.dispose();
    uhat.dispose();
    return loss;
  }
  tape.own(coef);
  const normalized = options.normalizeItem && { normalizedEps: options.eps ?? LEAST_LENGTH };
  const shared = { source: tape.own(uhat), scale: 1, ...normalized };
  rows.contribute({ ...shared, ids: positives, coef: coef.columns(0, 1) });
  const rounded = options.segments?.rounded;
  rows.contribute({ ...shared, ids: negatives, coef: coef.columns(1, drawn), rounded });
  return loss;
}
