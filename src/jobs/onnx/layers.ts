// Building blocks of the models as ONNX ops on one sequence: norms, activations, heads, and attention scores with relative bias.
// Each follows the op of the same name in src/ops.
//
// n events of the sequence, h heads, a query/key width of a head, v value width of a head, N as in nn/hstu.ts.

import { NORM_EPS } from '../../ops/norm-linear.js';
import type { Graph, Value } from './graph.js';

/** Logarithmic width of a time bucket, and the last of them; see the kernels' bucket.rs. */
const BUCKET_WIDTH = 0.301;
const LAST_BUCKET = 128;

export function silu(g: Graph, x: Value): Value {
  return g.op('Mul', [x, g.op('Sigmoid', [x])]);
}

export function normed(g: Graph, x: Value, kind: 'layer' | 'rms'): Value {
  const centred = kind === 'layer' ? g.op('Sub', [x, rowMean(g, x)]) : x;
  const variance = rowMean(g, g.op('Mul', [centred, centred]));
  return g.op('Div', [centred, g.op('Sqrt', [g.op('Add', [variance, g.float(NORM_EPS)])])]);
}

function rowMean(g: Graph, x: Value): Value {
  return g.op('ReduceMean', [x], { axes: [-1], keepdims: 1 });
}

/** L2-normalised rows. */
export function unitRows(g: Graph, x: Value): Value {
  const length = g.op('ReduceL2', [x], { axes: [-1], keepdims: 1 });
  return g.op('Div', [x, g.op('Max', [length, g.float(NORM_EPS)])]);
}

/** [n, h * w] -> [h, n, w] */
export function splitHeads(g: Graph, x: Value, heads: number): Value {
  return g.op('Transpose', [g.op('Reshape', [x, g.ints([0, heads, -1])])], { perm: [1, 0, 2] });
}

/** [h, n, w] -> [n, h * w] */
export function joinHeads(g: Graph, x: Value): Value {
  return g.op('Reshape', [g.op('Transpose', [x], { perm: [1, 0, 2] }), g.ints([0, -1])]);
}

/** [h, n, n] scores of every query against every key. */
export function scores(g: Graph, q: Value, k: Value, heads: number): Value {
  const keys = g.op('Transpose', [splitHeads(g, k, heads)], { perm: [0, 2, 1] });
  return g.op('MatMul', [splitHeads(g, q, heads), keys]);
}

export interface Pairs {
  /** [n, n] 1 where the key is not after the query, else 0. */
  readonly visible: Value;
  /** [n, n] key position minus query position. */
  readonly distance: Value;
  /** [n, n] query time minus key time, in the unit of the log, at least 0. */
  readonly gap: Value | undefined;
}

/** `items` [n]: the sequence, for its length. */
export function makePairs(
  g: Graph,
  items: Value,
  times?: { time: Value; nextTime: Value },
): Pairs & { readonly positions: Value } {
  const length = g.op('Squeeze', [g.op('Shape', [items])]);
  const positions = g.op('Range', [g.int(0), length, g.int(1)]); // [n]
  const distance = g.op('Sub', [positions, column(g, positions)]);
  const visible = g.cast(g.op('LessOrEqual', [distance, g.int(0)]), 'float');
  const gap = times && g.op('Abs', [g.op('Sub', [column(g, times.nextTime), times.time])]);
  return { visible, distance, gap, positions };
}

function column(g: Graph, x: Value): Value {
  return g.op('Unsqueeze', [x, g.ints([1])]);
}

/** [n, n] */
export function positionBias(g: Graph, weights: Value, n: number, { distance }: Pairs): Value {
  return g.op('Gather', [weights, g.op('Add', [distance, g.int(n - 1)])]);
}

/** [n, n] from a table over the logarithm of the gap, or alpha * gamma^(T^beta) with T = gap / unit. */
export function timeBias(
  g: Graph,
  gap: Value,
  { weights, values, unit }: { weights: Value; values: Float32Array; unit: number | undefined },
): Value {
  if (unit !== undefined) {
    const [alpha = 0, b = 0, c = 0] = values;
    const beta = Math.log1p(Math.exp(b));
    const rate = -Math.log1p(Math.exp(-c)); // ln gamma
    const days = g.cast(g.op('Div', [g.cast(gap, 'double'), g.double(unit)]), 'float');
    const decay = g.op('Exp', [g.op('Mul', [g.op('Pow', [days, g.float(beta)]), g.float(rate)])]);
    return g.op('Mul', [decay, g.float(alpha)]);
  }
  // In double precision, as the buckets are defined: a gap at a boundary must not fall into the wrong one.
  const size = g.cast(g.op('Max', [gap, g.int(1)]), 'double');
  const bucket = g.cast(g.op('Div', [g.op('Log', [size]), g.double(BUCKET_WIDTH)]), 'int64');
  const covered = LAST_BUCKET / (values.length - 1);
  const entry = g.op('Div', [g.op('Min', [bucket, g.int(LAST_BUCKET)]), g.int(covered)]);
  return g.op('Gather', [weights, entry]);
}
