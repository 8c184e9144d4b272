// Shared by hstuAttention and fuxiAttention: inputs, the relative bias, shape rules and the native call.
//
// T tokens, B sequences, h heads, a query/key width of a head, v value width of a head, n the model's constant N.

import type { Call } from '../native/call.js';
import type { Tensor } from '../tensor/tensor.js';
import { TurboError } from '../tensor/turbo-error.js';
import type { Parameter } from './parameter.js';
import { expectShape, expectSize } from './shape-rule.js';
import type { Tape } from './tape.js';

/** Size of the finest time bias table: one entry per bucket, and one for larger gaps. Coarser ones have 17, 33 or 65. */
export const TIME_ENTRIES = 129;

export interface Qkv {
  q: Tensor<'f32'>; // [T, h*a]
  k: Tensor<'f32'>; // [T, h*a]
  v: Tensor<'f32'>; // [T, h*v]
}

/** Sequence offsets and timestamps of a jagged batch. */
export interface JaggedTokens {
  offsets: Tensor<'i32'>; // [B + 1]
  /** Time of each event. */
  times?: Tensor<'i64'>; // [T]
  /** Time of the next event, which the query predicts. */
  queryTimes?: Tensor<'i64'>; // [T]
}

export interface RelativeOptions {
  heads: number;
  /** Divisor of the attention weights; determines the size of posW; no sequence may be longer. */
  n: number;
  posW?: Parameter; // [1, 2n-1]
  /** Weights of the time bias, used if the batch has times: a table, or the three parameters of the function. */
  tsW?: Parameter; // [1, 17 | 33 | 65 | 129], [1, 3] with timeUnit
  /**
   * Makes the time bias a function of the gap, alpha * gamma^(T^beta) with T = gap / timeUnit, where
   * tsW = [alpha, softplus^-1(beta), logit(gamma)].
   */
  timeUnit?: number;
}

export interface RelativeAttention {
  op: 'hstu_attention' | 'fuxi_attention';
  /** Output width as a multiple of the value width. */
  channels: number;
  qkv: Qkv;
  tokens: JaggedTokens;
  options: RelativeOptions;
}

export function relativeAttention(tape: Tape, attention: RelativeAttention): Tensor<'f32'> {
  const { op, qkv, tokens, options } = attention;
  const { posW, n } = options;
  const tsW = tokens.times ? options.tsW : undefined;
  checkShapes(attention);
  const { device } = tape;
  const inputs = (call: Call): Call =>
    call
      .tensor(qkv.q)
      .tensor(qkv.k)
      .tensor(qkv.v)
      .number(options.heads)
      .tensor(tokens.offsets)
      .number(n)
      .tensor(posW?.value)
      .tensor(tsW?.value)
      .tensor(tsW && tokens.times)
      .tensor(tsW && tokens.queryTimes)
      .number((tsW && options.timeUnit) ?? 0);
  const o = tape.output(qkv.v.rows, attention.channels * qkv.v.cols);
  inputs(device.call(`${op}_forward`))
    .tensor(o)
    .submit();
  tape.record({
    outputs: [o],
    backward() {
      const dO = tape.grad(o);
      const [dq, dk, dv] = [tape.someTarget(qkv.q), tape.someTarget(qkv.k), tape.someTarget(qkv.v)];
      const dposW = posW?.gradTarget();
      const dtsW = tsW?.gradTarget();
      inputs(device.call(`${op}_backward`))
        .tensor(dO)
        .grad(dq)
        .grad(dk)
        .grad(dv)
        .grad(dposW)
        .grad(dtsW)
        .submit();
    },
  });
  return o;
}

function checkShapes({ op, qkv: { q, k, v }, tokens, options }: RelativeAttention): void {
  expectShape(op, 'k', k, q.rows, q.cols);
  expectShape(op, 'v', v, q.rows, v.cols);
  if (options.posW) expectSize(op, 'posW', options.posW.value, 2 * options.n - 1);
  if (tokens.times) expectSize(op, 'times', tokens.times, q.rows);
  if (tokens.queryTimes) expectSize(op, 'queryTimes', tokens.queryTimes, q.rows);
  if ((tokens.times === undefined) !== (tokens.queryTimes === undefined)) {
    throw new TurboError({
      kind: 'argument',
      op,
      input: 'queryTimes',
      expected: 'times and queryTimes together',
      got: 'one of them',
    });
  }
}
