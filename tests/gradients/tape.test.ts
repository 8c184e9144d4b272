// The tape's gradients against directional differences of the loss, over whole models, dropout included (its masks are a
// pure function of seed, step and place, so the loss is a smooth function of the weights). Kernels have their own
// finite differences in double; here it is the plumbing: views, residuals, shared inputs, tables, several losses.
import { afterAll, describe, expect, it } from 'vitest';
import { Device } from '../../src/native/device.js';
import { bce } from '../../src/ops/bce.js';
import { add } from '../../src/ops/elementwise.js';
import { embeddingGather } from '../../src/ops/embedding-gather.js';
import { embeddingUpdate } from '../../src/ops/embedding-update.js';
import { fillConstant, fillNormal } from '../../src/ops/fill.js';
import { fullSoftmax } from '../../src/ops/full-softmax.js';
import { fuxiAttention } from '../../src/ops/fuxi-attention.js';
import { gatedNormLinearResidual } from '../../src/ops/gated-norm-linear-residual.js';
import { gbce } from '../../src/ops/gbce.js';
import { hstuAttention } from '../../src/ops/hstu-attention.js';
import { l2Norm } from '../../src/ops/l2-norm.js';
import { linearResidual } from '../../src/ops/linear-residual.js';
import { norm } from '../../src/ops/norm.js';
import { normLinear } from '../../src/ops/norm-linear.js';
import { Parameter } from '../../src/ops/parameter.js';
import { sampledSoftmax } from '../../src/ops/sampled-softmax.js';
import { softmaxAttention } from '../../src/ops/softmax-attention.js';
import { swigluLinearResidual } from '../../src/ops/swiglu-linear-residual.js';
import { Table } from '../../src/ops/table.js';
import { Tape } from '../../src/ops/tape.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { TinyModel, tinyBatch } from '../support/tiny-model.js';

const device = Device.open({ threads: 2 });
afterAll(() => device.dispose());

const LENGTHS = [7, 0, 1, 12, 3];
const [TOKENS, D, ITEMS, HEADS, N, DRAWN] = [23, 12, 9, 2, 16, 5];

let purpose = 0;
function randomTensor(rows: number, cols: number, std: number): Tensor<'f32'> {
  const tensor = device.tensor([rows, cols]);
  fillNormal(device, tensor, { seed: 5, step: 0, purpose: purpose++ }, { std });
  return tensor;
}
function parameter(rows: number, cols: number, std = 0.3): Parameter {
  return new Parameter(device, 'p', randomTensor(rows, cols, std));
}
function seeds(values: readonly number[]): Int32Array {
  return Int32Array.from({ length: TOKENS }, (_, t) => values[t % values.length]!);
}

/** Makes the whole gradient of a table a matrix, while the tape lives. */
function makeDense(table: Table<'f32'>): void {
  const contributions = table.rowGradient.contributions!;
  const grad = table.gradTarget();
  if (contributions.length > 0) {
    embeddingUpdate(device, table.value, { source: table, contributions }, { kind: 'dense', grad });
  }
}

interface Checked {
  owners: (Parameter | Table<'f32'>)[];
  /** Records the model and returns its losses, whose sum is differentiated. */
  losses: (tape: Tape) => Tensor<'f32'>[];
}

/**
 * For every owner, <gradient, direction> against the difference of the loss along a random direction; the largest error as
 * a share of |gradient| |direction|.
 */
async function largestError({ owners, losses }: Checked): Promise<number> {
  let largest = 0;
  const evaluate = async (backward: boolean): Promise<number> => {
    using tape = new Tape(device, { training: true, seed: 3, step: 9 });
    const values = losses(tape).map(loss => device.read(loss));
    if (backward) {
      tape.backward();
      for (const owner of owners) if (owner instanceof Table) makeDense(owner);
    } else {
      for (const owner of owners) owner.clearGrad();
    }
    return (await Promise.all(values)).reduce((sum, value) => sum + value[0]!, 0);
  };
  await evaluate(true);
  const gradients = await Promise.all(owners.map(owner => device.read(owner.gradient.value!)));
  for (const owner of owners) owner.clearGrad();
  for (const [index, owner] of owners.entries()) {
    using direction = randomTensor(owner.value.rows, owner.value.cols, 1);
    const along = await device.read(direction);
    const slope = along.reduce((sum, x, i) => sum + x * gradients[index]![i]!, 0);
    const size = Math.hypot(...along);
    // Far enough that single precision shows the difference, near enough to be straight.
    const reach = 0.02 / size;
    add(device, reach, { x: direction, y: owner.value });
    const up = await evaluate(false);
    add(device, -2 * reach, { x: direction, y: owner.value });
    const down = await evaluate(false);
    add(device, reach, { x: direction, y: owner.value });
    const scale = Math.hypot(...gradients[index]!) * size;
    const error = Math.abs((up - down) / (2 * reach) - slope) / scale;
    largest = error <= largest ? largest : error; // NaN is the largest
  }
  return largest;
}

/** Curvature, the kinks of ReLU and single precision leave some thousandths; a gradient in the wrong place leaves tenths. */
const SMALL = 5e-3;

describe('gradients of a model', () => {
  it('HSTU: two tables, positions, dropout, time bias, sampled softmax', async () => {
    const model = new TinyModel(device, 4);
    const batch = tinyBatch(LENGTHS, 2);
    const owners = [...model.parameters, model.items, model.actions];
    expect(await largestError({ owners, losses: tape => [model.forward(tape, batch).loss] })).toBeLessThan(SMALL);
  });

  it('FuXi and SwiGLU, position bias only, smoothed full softmax over the table that is also read', async () => {
    const table = new Table(device, 'items', randomTensor(ITEMS, D, 0.5));
    const [w, posW, w0, b0] = [parameter(D, 6 * D), parameter(1, 2 * N - 1), parameter(3 * D, D), parameter(1, D)];
    const [w13, w2] = [parameter(D, 2 * D), parameter(D, D)];
    const ids = device.from(seeds([0, 3, 5, 8, 1]));
    const positives = device.from(seeds([2, -1, 4, 4, 7]));
    const offsets = device.from(Int32Array.of(0, 7, 7, 8, 20, 23));
    const losses = (tape: Tape): Tensor<'f32'>[] => {
      const x = embeddingGather(tape, [{ rows: table, ids, scale: 2 }]);
      const y = normLinear(tape, x, w, { norm: 'rms', act: 'silu' });
      const qkv = { v: y.columns(3 * D, D), q: y.columns(4 * D, D), k: y.columns(5 * D, D) };
      const o = fuxiAttention(tape, qkv, { offsets }, { heads: HEADS, n: N, posW });
      const gated = { u: y.columns(0, 3 * D), o, x };
      const z = gatedNormLinearResidual(tape, gated, w0, { norm: 'rms', bias: b0, dropout: 0.1 });
      const h = normLinear(tape, z, w13, { norm: 'rms', dropout: 0.1 });
      const u = swigluLinearResidual(tape, { h, x: z }, w2);
      const logit = { temperature: 0.7, normalizeUser: true, normalizeItem: true };
      return [fullSoftmax(tape, u, table, { positives, ...logit, smoothing: 0.3 })];
    };
    expect(await largestError({ owners: [table, w, posW, w0, b0, w13, w2], losses })).toBeLessThan(SMALL);
  });

  it('SASRec with every dropout, three losses on one output', async () => {
    const table = new Table(device, 'items', randomTensor(ITEMS, D, 0.5));
    const [gain, shift] = [parameter(1, D), parameter(1, D)];
    const [wqkv, bqkv, wo, bo] = [parameter(D, 3 * D), parameter(1, 3 * D), parameter(D, D), parameter(1, D)];
    const [w1, b1, w2, b2] = [parameter(D, 20), parameter(1, 20), parameter(20, D), parameter(1, D)];
    const ids = device.from(seeds([0, 3, 5, 8, 1]));
    const positives = device.from(seeds([2, -1, 4, 4, 7]));
    const negatives = device.from(
      Int32Array.from({ length: TOKENS * DRAWN }, (_, i) => (7 * i) % ITEMS),
      [TOKENS, DRAWN],
    );
    const logq = device.from(Float32Array.from({ length: ITEMS }, (_, i) => -2 - 0.1 * i));
    const offsets = device.from(Int32Array.of(0, 7, 7, 8, 20, 23));
    const losses = (tape: Tape): Tensor<'f32'>[] => {
      const x = embeddingGather(tape, [{ rows: table, ids }], { dropout: 0.2 });
      const normed = norm(tape, x, { norm: 'layer', gain, shift });
      const y = normLinear(tape, normed, wqkv, { bias: bqkv });
      const qkv = { q: y.columns(0, D), k: y.columns(D, D), v: y.columns(2 * D, D) };
      const o = softmaxAttention(tape, qkv, { offsets, heads: HEADS, dropout: 0.2 });
      const z = linearResidual(tape, { x: o, residual: x }, wo, { bias: bo, dropOut: 0.2 });
      const hidden = normLinear(tape, z, w1, { norm: 'layer', act: 'relu', bias: b1 });
      const u = linearResidual(tape, { x: hidden, residual: z }, w2, { bias: b2, dropIn: 0.2, dropOut: 0.2 });
      const unit = l2Norm(tape, u);
      return [
        sampledSoftmax(tape, u, table, { positives, negatives, logq }),
        bce(tape, unit, table, { positives, negatives, normalizeItem: true, temperature: 0.5 }),
        gbce(tape, u, table, { positives, negatives, t: 0.75 }),
      ];
    };
    expect(
      await largestError({ owners: [table, gain, shift, wqkv, bqkv, wo, bo, w1, b1, w2, b2], losses }),
    ).toBeLessThan(SMALL);
  });
});

describe('the tape', () => {
  const ones = (rows: number, cols: number): Tensor<'f32'> => {
    const tensor = device.tensor([rows, cols]);
    fillConstant(device, tensor, 1);
    return tensor;
  };
  /** y = x W with W the identity: the gradient of x is that of y. */
  const identity = (width: number): Parameter => {
    const values = Float32Array.from({ length: width * width }, (_, i) => (i % (width + 1) === 0 ? 1 : 0));
    return new Parameter(device, 'identity', device.from(values, [width, width]));
  };
  const gradOf = async (build: (tape: Tape, x: Tensor<'f32'>) => Tensor<'f32'>[]): Promise<number[] | undefined> => {
    using tape = new Tape(device, { training: true });
    const x = ones(1, 4);
    tape.watch(x);
    for (const y of build(tape, x)) tape.seedGrad(y, ones(y.rows, y.cols));
    tape.backward();
    const grad = tape.inputGrad(x);
    return grad && [...(await device.read(grad))];
  };

  it('adds the gradients of overlapping column ranges and zeroes columns that nobody used', async () => {
    const grad = await gradOf((tape, x) => {
      const y = normLinear(tape, x, identity(4));
      return [
        normLinear(tape, y.columns(1, 2), identity(2)),
        normLinear(tape, y.columns(1, 1), identity(1)),
        // Partly written already, partly not.
        normLinear(tape, y.columns(0, 2), identity(2)),
      ];
    });
    expect(grad).toEqual([1, 3, 1, 0]);
  });

  it('adds a residual to a gradient that is already there, and to a column range', async () => {
    const twice = await gradOf((tape, x) => {
      const y = normLinear(tape, x, identity(4));
      const other = normLinear(tape, y, identity(4));
      return [linearResidual(tape, { x: other, residual: y }, identity(4)), normLinear(tape, y, identity(4))];
    });
    expect(twice).toEqual([3, 3, 3, 3]);
    const part = await gradOf((tape, x) => {
      const y = normLinear(tape, x, identity(4));
      return [linearResidual(tape, { x: y.columns(0, 2), residual: y.columns(2, 2) }, identity(2))];
    });
    expect(part).toEqual([1, 1, 1, 1]);
  });

  it('gives no gradient to what the loss does not depend on', async () => {
    const unused = identity(4);
    const grad = await gradOf((tape, x) => {
      normLinear(tape, x, unused);
      return [];
    });
    expect(grad).toBeUndefined();
    expect(unused.grad).toBeUndefined();
  });

  it('accumulates over tapes until the gradient is cleared', async () => {
    const w = identity(2);
    for (const expected of [1, 2]) {
      using tape = new Tape(device, { training: true });
      const y = normLinear(tape, ones(1, 2), w);
      tape.seedGrad(y, ones(1, 2));
      tape.backward();
      expect((await device.read(w.grad!))[0]).toBe(expected);
    }
    w.clearGrad();
    expect(w.grad).toBeUndefined();
  });

  it('frees by scope when it does not train, keeping what the scope returns', async () => {
    const before = device.stats().tensors;
    const w = identity(4);
    const x = ones(1, 4);
    const tape = new Tape(device, { training: false });
    const kept = tape.scope(() => {
      const inner = normLinear(tape, x, w, { norm: 'layer', act: 'silu', dropout: 0.5 });
      return linearResidual(tape, { x: inner, residual: x }, w);
    });
    expect(device.stats().tensors).toBe(before + 3);
    expect(await device.read(kept)).toEqual(Float32Array.of(1, 1, 1, 1));
    tape.dispose();
    expect(device.stats().tensors).toBe(before + 2);
  });

  it('gives the same bits for a projection in panels, also where nobody used some of them', async () => {
    const [width, heads] = [32, 2];
    const [x, w, wo] = [randomTensor(TOKENS, width, 1), parameter(width, 4 * width), parameter(width, width)];
    const offsets = device.from(Int32Array.of(0, 7, 7, 8, 20, 23));
    const run = async (headWidths: readonly number[], gate: boolean): Promise<Float32Array[]> => {
      using tape = new Tape(device, { training: true, seed: 2, step: 3 });
      tape.watch(x);
      const y = normLinear(tape, x, w, { norm: 'layer', act: 'silu', headWidths });
      expect(y.layout).toBe(headWidths.length > 0 ? 'panels' : 'rows');
      const qkv = { v: y.columns(width, width), q: y.columns(2 * width, width), k: y.columns(3 * width, width) };
      const o = hstuAttention(tape, qkv, { offsets }, { heads, n: N });
      const gated = { u: y.columns(0, width), o, x };
      const out = gate
        ? gatedNormLinearResidual(tape, gated, wo, { norm: 'layer', dropout: 0.2 })
        : linearResidual(tape, { x: o, residual: x }, wo);
      const grad = device.tensor(out.shape);
      fillConstant(device, grad, 0.1);
      tape.seedGrad(out, grad);
      const values = [device.read(y), device.read(out)];
      tape.backward();
      using dx = tape.inputGrad(x)!;
      const all = await Promise.all([...values, ...[dx, w.grad!, wo.grad!].map(tensor => device.read(tensor))]);
      for (const owner of [w, wo]) owner.clearGrad();
      return all;
    };
    for (const gate of [true, false]) {
      expect(await run([width / heads], gate)).toEqual(await run([], gate));
    }
  });

  it('draws other random numbers for each op and each step, and the same ones again', async () => {
    const masks = async (step: number): Promise<string[]> => {
      using tape = new Tape(device, { training: true, seed: 1, step });
      const x = ones(8, 16);
      const drawn = [0, 1].map(() => normLinear(tape, x, identity(16), { dropout: 0.5 }));
      return Promise.all(drawn.map(async y => String(await device.read(y))));
    };
    const [first, second] = await masks(1);
    expect(first).not.toBe(second);
    expect(await masks(1)).toEqual([first, second]);
    expect(await masks(2)).not.toContain(first);
  });
});
