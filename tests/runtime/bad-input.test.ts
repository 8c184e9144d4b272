// Invalid input gives a typed error that names op, input, expected and got: at the call if a shape rule or the enqueue detects it, at
// the sync if only the kernel can. The process and the other tensors remain usable.
import { afterAll, describe, expect, it } from 'vitest';
import { Device } from '../../src/native/device.js';
import { adamw } from '../../src/ops/adamw.js';
import { clipScale } from '../../src/ops/clip-scale.js';
import { embeddingGather } from '../../src/ops/embedding-gather.js';
import { gatedNormLinearResidual } from '../../src/ops/gated-norm-linear-residual.js';
import { hstuAttention } from '../../src/ops/hstu-attention.js';
import { normLinear } from '../../src/ops/norm-linear.js';
import { Parameter } from '../../src/ops/parameter.js';
import { sampledSoftmax } from '../../src/ops/sampled-softmax.js';
import { softmaxAttention } from '../../src/ops/softmax-attention.js';
import { Table } from '../../src/ops/table.js';
import { Tape } from '../../src/ops/tape.js';
import { topK } from '../../src/ops/top-k.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { notFiniteSum, ZERO } from '../support/exact-sum.js';

const device = Device.open({ threads: 2 });
afterAll(() => device.dispose());

const [T, D, N] = [4, 2, 8];
const tape = new Tape(device, { training: false });

function filled(rows: number, cols: number, value = 0.5): Tensor<'f32'> {
  return device.from(new Float32Array(rows * cols).fill(value), [rows, cols]);
}
const parameter = (rows: number, cols: number): Parameter => new Parameter(device, 'p', filled(rows, cols));
const int32 = (...values: number[]): Tensor<'i32'> => device.from(Int32Array.of(...values));
const int64 = (...values: number[]): Tensor<'i64'> => device.from(Float64Array.of(...values));
const table = (): Table => new Table(device, 'items', filled(5, D));

interface Attention {
  offsets?: Tensor<'i32'>;
  times?: Tensor<'i64'>;
  queryTimes?: Tensor<'i64'>;
  heads?: number;
  n?: number;
}
function attend({ offsets = int32(0, T), heads = 1, n = N, ...times }: Attention): void {
  const x = filled(T, D);
  const bias = { posW: parameter(1, 2 * n - 1), tsW: parameter(1, 129) };
  hstuAttention(tape, { q: x, k: x, v: x }, { offsets, ...times }, { heads, n, ...bias });
}

interface Loss {
  positives?: Tensor<'i32'>;
  negatives?: Tensor<'i32'>;
  u?: Tensor<'f32'>;
  temperature?: number;
}
function lose({ positives = int32(0, 1, 2, 3), negatives, u = filled(T, D), temperature = 1 }: Loss): void {
  const drawn = negatives ?? device.from(new Int32Array(T * 2), [T, 2]);
  sampledSoftmax(tape, u, table(), { positives, negatives: drawn, temperature });
}

const [good, sparse] = [int64(1, 2, 3, 4), Float32Array.of(1, Number.NaN, 1, 1, 1, 1, 1, 1)];
const notFinite = (): Tensor<'f32'> => device.from(sparse, [T, D], { allowNonFinite: true });

const LATER: [string, () => void, object][] = [
  [
    'offsets that decrease',
    () => attend({ offsets: int32(0, 3, 2, 4) }),
    { kind: 'offsets', op: 'hstu_attention', got: 'offsets[1] = 3 before offsets[2] = 2' },
  ],
  [
    'offsets from elsewhere than 0',
    () => attend({ offsets: int32(1, 4) }),
    { kind: 'offsets', input: 'offsets', expected: 'offsets[0] = 0', got: '1' },
  ],
  ['offsets that end early', () => attend({ offsets: int32(0, 3) }), { kind: 'offsets', got: '3' }],
  ['a sequence longer than n', () => attend({ n: 3 }), { kind: 'range', op: 'hstu_attention' }],
  [
    'a negative timestamp',
    () => attend({ times: int64(1, 2, -3, 4), queryTimes: good }),
    { kind: 'timestamp', input: 'times', got: '-3 at index 2' },
  ],
  [
    'an overflowing timestamp',
    () => attend({ times: good, queryTimes: device.from(BigInt64Array.of(1n, 2n, 3n, 2n ** 62n + 1n)) }),
    { kind: 'timestamp', op: 'hstu_attention', got: `${2n ** 62n + 1n} at index 3` },
  ],
  ['heads that do not divide the width', () => attend({ heads: 3 }), { kind: 'shape', op: 'hstu_attention' }],
  [
    'heads of softmax attention',
    () =>
      softmaxAttention(tape, { q: filled(T, D), k: filled(T, D), v: filled(T, D) }, { offsets: int32(0, T), heads: 0 }),
    { op: 'softmax_attention' },
  ],
  [
    'an item id beyond the table',
    () => embeddingGather(tape, [{ rows: table(), ids: int32(0, 5) }]),
    { kind: 'range', op: 'embedding_gather', input: 'ids', expected: 'ids in -1..5', got: '5 at index 1' },
  ],
  [
    'a positive beyond the table',
    () => lose({ positives: int32(0, 1, 9, 3) }),
    { kind: 'range', op: 'sampled_softmax', got: '9 at index 2' },
  ],
  [
    'a negative id below -1',
    () => lose({ negatives: device.from(Int32Array.of(0, 1, 2, 3, 4, 0, -2, 1), [T, 2]) }),
    { kind: 'range', op: 'sampled_softmax' },
  ],
  ['a loss that is not finite', () => lose({ u: notFinite() }), { kind: 'not-finite', op: 'sampled_softmax' }],
  ['a temperature of 0', () => lose({ temperature: 0 }), { kind: 'argument', op: 'sampled_softmax' }],
  [
    'a gradient norm that is not finite',
    () =>
      clipScale(device, {
        squareSum: device.from(notFiniteSum()),
        maxNorm: 1,
        scale: filled(1, 1),
      }),
    { kind: 'not-finite', op: 'clip_scale' },
  ],
  [
    'a moment of another size',
    () =>
      adamw(device, {
        p: filled(1, 4),
        g: filled(1, 4),
        m: filled(1, 3),
        v: filled(1, 4),
        hyper: { lr: 1, beta1: 0.9, beta2: 0.9, eps: 1e-8, weightDecay: 0, step: 1 },
      }),
    { kind: 'shape', op: 'adamw', input: 'm', expected: '[4]', got: '[3]' },
  ],
  [
    'a step of 0',
    () =>
      adamw(device, {
        p: filled(1, 1),
        g: filled(1, 1),
        m: filled(1, 1),
        v: filled(1, 1),
        hyper: { lr: 1, beta1: 0.9, beta2: 0.9, eps: 1e-8, weightDecay: 0, step: 0 },
      }),
    { kind: 'argument', op: 'adamw', input: 'step' },
  ],
  [
    'excluded ids beyond the table',
    () => topK(device, filled(1, D), table().value, { k: 1, excluded: { offsets: int32(0, 1), ids: int32(77) } }),
    { kind: 'range', op: 'top_k' },
  ],
];

const AT_ONCE: [string, () => void, object][] = [
  [
    'a weight of another height',
    () => normLinear(tape, filled(T, D), parameter(3, 4)),
    { kind: 'shape', op: 'norm_linear', input: 'w', expected: '[2, 4]', got: '[3, 4]' },
  ],
  [
    'a bias of another width',
    () => normLinear(tape, filled(T, D), parameter(D, 4), { bias: parameter(1, 3) }),
    { kind: 'shape', input: 'bias', expected: '[1, 4]', got: '[1, 3]' },
  ],
  [
    'a residual of other tokens',
    () =>
      gatedNormLinearResidual(tape, { u: filled(T, D), o: filled(T, D), x: filled(3, D) }, parameter(D, D), {
        norm: 'layer',
      }),
    { kind: 'shape', op: 'gated_norm_linear_residual', input: 'x', expected: '[4, 2]', got: '[3, 2]' },
  ],
  [
    'times without query times',
    () => attend({ times: good }),
    { kind: 'argument', op: 'hstu_attention', input: 'queryTimes' },
  ],
  [
    'times of other tokens',
    () => attend({ times: int64(1), queryTimes: good }),
    { kind: 'shape', input: 'times', expected: '[4]', got: '[1]' },
  ],
  [
    'a drop probability of 1',
    () => new Tape(device, { training: true }).dropout(1),
    { kind: 'argument', op: 'dropout', got: '1' },
  ],
  [
    'negatives of other tokens',
    () => lose({ negatives: device.tensor([3, 2], 'i32') }),
    { kind: 'shape', op: 'sampled_softmax', input: 'negatives', expected: '[4, 2]', got: '[3, 2]' },
  ],
  [
    'a disposed input',
    () => {
      const x = filled(T, D);
      x.dispose();
      normLinear(tape, x, parameter(D, D));
    },
    { kind: 'handle', op: 'norm_linear_forward', input: 'x', got: 'one that was disposed' },
  ],
  [
    'a column range where a whole tensor is needed',
    () => device.call('square_sum').tensor(filled(T, D).columns(0, 1)).tensor(device.from(ZERO())).flag(false).submit(),
    { kind: 'shape', op: 'square_sum', input: 'x' },
  ],
  [
    'a tensor in panels where one in rows is needed',
    () => normLinear(tape, device.tensor([T, 32], 'f32', 'panels'), parameter(32, D)),
    { kind: 'shape', op: 'norm_linear_forward', input: 'x', got: 'one in panels' },
  ],
  [
    'half a token count',
    () => device.call('draw_negatives').number(0.5).submit(),
    { kind: 'argument', op: 'draw_negatives', input: 'seed', expected: 'a whole number', got: '0.5' },
  ],
];

describe('refused at the call', () => {
  it.each(AT_ONCE)('%s', (_, work, fields) => {
    expect(work).toThrow(expect.objectContaining({ name: 'TurboError', ...fields }));
  });
});

describe('refused by the kernel, reported at the sync', () => {
  it.each(LATER)('%s', async (_, work, fields) => {
    using bystander = device.from(Float32Array.of(1, 2, 3));
    await device.sync();
    work();
    await expect(device.sync()).rejects.toMatchObject({ name: 'TurboError', ...fields });
    expect(await device.read(bystander)).toEqual(Float32Array.of(1, 2, 3));
  });
});
