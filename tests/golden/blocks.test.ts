// One HSTU, FuXi-alpha (with buckets and with the function of time) and SASRec block written from the ops, against PyTorch's autograd in double precision: the output
// and the gradient of every input and parameter. `make_goldens.py` says how the files came about.
//
// D width, h heads, a = dqk, v = dv, N longest sequence, m inner width of the feed-forward.
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Device } from '../../src/native/device.js';
import { fuxiAttention } from '../../src/ops/fuxi-attention.js';
import { gatedNormLinearResidual } from '../../src/ops/gated-norm-linear-residual.js';
import { hstuAttention } from '../../src/ops/hstu-attention.js';
import { linearResidual } from '../../src/ops/linear-residual.js';
import { norm } from '../../src/ops/norm.js';
import { normLinear } from '../../src/ops/norm-linear.js';
import { Parameter } from '../../src/ops/parameter.js';
import type { JaggedTokens } from '../../src/ops/relative-attention.js';
import { softmaxAttention } from '../../src/ops/softmax-attention.js';
import { swigluLinearResidual } from '../../src/ops/swiglu-linear-residual.js';
import { Tape } from '../../src/ops/tape.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { SafetensorsFile } from '../../src/util/safetensors.js';
import { firstMismatch, type Tolerance } from '../support/close.js';

interface Block {
  tape: Tape;
  x: Tensor<'f32'>;
  p: (name: string) => Parameter;
  tokens: JaggedTokens;
  size: { heads: number; a: number; v: number; N: number };
}

function hstu({ tape, x, p, tokens, size: { heads, a, v, N } }: Block): Tensor<'f32'> {
  const [ha, hv] = [heads * a, heads * v];
  const y = normLinear(tape, x, p('w'), { norm: 'layer', act: 'silu' });
  const qkv = { v: y.columns(hv, hv), q: y.columns(2 * hv, ha), k: y.columns(2 * hv + ha, ha) };
  const o = hstuAttention(tape, qkv, tokens, { heads, n: N, posW: p('pos_w'), tsW: p('ts_w') });
  return gatedNormLinearResidual(tape, { u: y.columns(0, hv), o, x }, p('wo'), { norm: 'layer', bias: p('bo') });
}

function fuxi({ tape, x, p, tokens, size: { heads, a, v, N } }: Block, timeUnit?: number): Tensor<'f32'> {
  const [ha, hv] = [heads * a, heads * v];
  const y = normLinear(tape, x, p('w'), { norm: 'rms', act: 'silu' });
  const qkv = { v: y.columns(3 * hv, hv), q: y.columns(4 * hv, ha), k: y.columns(4 * hv + ha, ha) };
  const time = { tsW: p('ts_w'), ...(timeUnit !== undefined && { timeUnit }) };
  const attended = fuxiAttention(tape, qkv, tokens, { heads, n: N, posW: p('pos_w'), ...time });
  const gated = { u: y.columns(0, 3 * hv), o: attended, x };
  const o = gatedNormLinearResidual(tape, gated, p('w0'), { norm: 'rms', bias: p('b0') });
  const h = normLinear(tape, o, p('w13'), { norm: 'rms' });
  return swigluLinearResidual(tape, { h, x: o }, p('w2'));
}

function sasrec({ tape, x, p, tokens, size: { heads, a, v } }: Block): Tensor<'f32'> {
  const [ha, hv] = [heads * a, heads * v];
  const first = norm(tape, x, { norm: 'layer', gain: p('norm1_gain'), shift: p('norm1_shift') });
  const y = normLinear(tape, first, p('wqkv'), { bias: p('bqkv') });
  const qkv = { q: y.columns(0, ha), k: y.columns(ha, ha), v: y.columns(2 * ha, hv) };
  const o = softmaxAttention(tape, qkv, { offsets: tokens.offsets, heads });
  const middle = linearResidual(tape, { x: o, residual: x }, p('wo'), { bias: p('bo') });
  const second = norm(tape, middle, { norm: 'layer', gain: p('norm2_gain'), shift: p('norm2_shift') });
  const hidden = normLinear(tape, second, p('w1'), { act: 'relu', bias: p('b1') });
  return linearResidual(tape, { x: hidden, residual: middle }, p('w2'), { bias: p('b2') });
}

function sasrecMeta({ tape, x, p, tokens, size: { heads, a, v } }: Block): Tensor<'f32'> {
  const [ha, hv] = [heads * a, heads * v];
  const query = norm(tape, x, { norm: 'layer', eps: 1e-8 });
  const q = normLinear(tape, query, p('wq'), { bias: p('bq') });
  const kv = normLinear(tape, x, p('wkv'), { bias: p('bkv') });
  const qkv = { q, k: kv.columns(0, ha), v: kv.columns(ha, hv) };
  const o = softmaxAttention(tape, qkv, { offsets: tokens.offsets, heads });
  const attended = linearResidual(tape, { x: o, residual: query }, p('wo'), { bias: p('bo') });
  const middle = norm(tape, attended, { norm: 'layer', eps: 1e-8 });
  const hidden = normLinear(tape, middle, p('w1'), { act: 'relu', bias: p('b1') });
  return linearResidual(tape, { x: hidden, residual: middle }, p('w2'), { bias: p('b2') });
}

/** Single precision against double: terms of sums are as large as the largest element, wherever they cancel. */
function tolerance(expected: Float32Array): Tolerance {
  return { absolute: 2e-6 * expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0), relative: 2e-5 };
}

const CASES: [string, (block: Block) => Tensor<'f32'>][] = [
  ['hstu', hstu],
  ['fuxi', block => fuxi(block)],
  ['fuxi_power', block => fuxi(block, 86_400)],
  ['sasrec', sasrec],
  ['sasrec_meta', sasrecMeta],
];

describe.each(CASES)('%s block', (name, block) => {
  it.each([
    { threads: 1, kernels: 'best' },
    { threads: 2, kernels: 'best' },
    { threads: 2, kernels: 'portable' },
  ] as const)('equals PyTorch: output and every gradient (%o)', async options => {
    using device = Device.open(options);
    const file = new SafetensorsFile(fileURLToPath(new URL(`${name}.safetensors`, import.meta.url)));
    const parameters = new Map<string, Parameter>();
    const load = (key: string): Tensor<'f32'> => {
      const [rows = 1, cols] = file.tensors.get(key)!.shape;
      return device.from(file.read(key, 'F32'), cols === undefined ? [1, rows] : [rows, cols]);
    };
    const p = (key: string): Parameter => {
      const parameter = parameters.get(key) ?? new Parameter(device, key, load(key));
      parameters.set(key, parameter);
      return parameter;
    };
    const tokens = {
      offsets: device.from(file.read('offsets', 'I32')),
      times: device.from(file.read('times', 'I64')),
      queryTimes: device.from(file.read('query_times', 'I64')),
    };
    const meta = (key: string): number => Number(file.metadata[key]);
    const size = { heads: meta('heads'), a: meta('a'), v: meta('v'), N: meta('N') };

    using tape = new Tape(device, { training: true });
    const x = load('x');
    tape.watch(x);
    const y = block({ tape, x, p, tokens, size });
    const output = device.read(y);
    tape.seedGrad(y, load('dy'));
    tape.backward();
    const mismatches: Record<string, string> = {};
    const check = async (key: string, value: Promise<Float32Array>): Promise<void> => {
      const expected = file.read(key, 'F32');
      const mismatch = firstMismatch(await value, expected, tolerance(expected));
      if (mismatch) mismatches[key] = mismatch;
    };
    await check('y', output);
    await check('dx', device.read(tape.inputGrad(x)!));
    for (const [key, parameter] of parameters) await check(`d_${key}`, device.read(parameter.grad!));
    expect(mismatches).toEqual({});
    expect(parameters.size).toBe([...file.tensors.keys()].filter(key => key.startsWith('d_')).length);
    file.close();
  });
});
