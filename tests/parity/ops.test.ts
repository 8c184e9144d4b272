// Ops outside the tape, called through the addon, compared with a few lines of plain arithmetic: checks that every argument is passed
// correctly. The kernels themselves are compared with their double-precision twins in Rust.
import { afterAll, describe, expect, it } from 'vitest';
import { Device } from '../../src/native/device.js';
import { adamw } from '../../src/ops/adamw.js';
import { aliasTable } from '../../src/ops/alias-table.js';
import { clipScale } from '../../src/ops/clip-scale.js';
import { drawNegatives } from '../../src/ops/draw-negatives.js';
import { add, castToF16, castToF32, lerp } from '../../src/ops/elementwise.js';
import { embeddingUpdate } from '../../src/ops/embedding-update.js';
import { fillConstant, fillNormal, fillTruncNormal, fillUniform } from '../../src/ops/fill.js';
import { squareSum } from '../../src/ops/square-sum.js';
import { Table } from '../../src/ops/table.js';
import { targetScores } from '../../src/ops/target-scores.js';
import { countAhead } from '../../src/ops/count-ahead.js';
import { expSum } from '../../src/ops/exp-sum.js';
import { topK } from '../../src/ops/top-k.js';
import type { Tensor } from '../../src/tensor/tensor.js';
import { firstMismatch } from '../support/close.js';
import { valueOf, ZERO } from '../support/exact-sum.js';

const device = Device.open({ threads: 2 });
afterAll(() => device.dispose());

const KEY = { seed: 1, step: 2, purpose: 3 };
const EXACT = { absolute: 1e-6, relative: 1e-6 };

function numbers(count: number, at: (i: number) => number): Float32Array {
  return Float32Array.from({ length: count }, (_, i) => at(i));
}
function mismatch(got: Float32Array, expected: readonly number[]): string | undefined {
  return firstMismatch(got, Float64Array.from(expected), EXACT);
}

/** One Adam step in double. */
function adam(state: { p: number; g: number; m: number; v: number }, hyper: typeof HYPER): typeof state {
  const m = hyper.beta1 * state.m + (1 - hyper.beta1) * state.g;
  const v = hyper.beta2 * state.v + (1 - hyper.beta2) * state.g ** 2;
  const [mHat, vHat] = [m / (1 - hyper.beta1 ** hyper.step), v / (1 - hyper.beta2 ** hyper.step)];
  const p = state.p * (1 - hyper.lr * hyper.weightDecay) - (hyper.lr * mHat) / (Math.sqrt(vHat) + hyper.eps);
  return { p, g: state.g, m, v };
}
const HYPER = { lr: 0.05, beta1: 0.8, beta2: 0.95, eps: 1e-3, weightDecay: 0.1, step: 3 };

describe('optimisers', () => {
  it('adamw, with a gradient scale', async () => {
    const count = 21;
    const values = Array.from({ length: count }, (_, i) => ({ p: i - 9, g: Math.sin(i), m: i / 50, v: i / 99 }));
    const of = (key: 'p' | 'g' | 'm' | 'v'): Tensor<'f32'> => device.from(numbers(count, i => values[i]![key]));
    const [p, g, m, v] = [of('p'), of('g'), of('m'), of('v')];
    adamw(device, { p, g, m, v, hyper: HYPER, gradScale: device.from(Float32Array.of(0.5)) });
    const expected = values.map(value => adam({ ...value, g: value.g / 2 }, HYPER));
    expect(
      mismatch(
        await device.read(p),
        expected.map(x => x.p),
      ),
    ).toBeUndefined();
    expect(
      mismatch(
        await device.read(m),
        expected.map(x => x.m),
      ),
    ).toBeUndefined();
    expect(
      mismatch(
        await device.read(v),
        expected.map(x => x.v),
      ),
    ).toBeUndefined();
  });

  it('squareSum and clipScale', async () => {
    const [sum, scale] = [device.from(ZERO()), device.tensor([1, 1])];
    squareSum(device, device.from(Float32Array.of(3, 0)), { to: sum, accumulate: false });
    squareSum(device, device.from(Float32Array.of(4)), { to: sum, accumulate: true });
    clipScale(device, { squareSum: sum, maxNorm: 2, scale });
    expect(valueOf(await device.read(sum))).toBe(25);
    expect(mismatch(await device.read(scale), [0.4])).toBeUndefined();
    clipScale(device, { squareSum: sum, maxNorm: 6, scale });
    expect(mismatch(await device.read(scale), [1])).toBeUndefined();
  });

  const D = 3;
  /** Two contributions to a table of 4 rows: rows 2 and 0 are touched, 1 and 3 are not. */
  function contributed() {
    const rows = numbers(4 * D, i => 1 + i / 10);
    const table = new Table(device, 'table', device.from(rows, [4, D]));
    const [a, b] = [Float32Array.of(1, 2, 3, 4, 5, 6), Float32Array.of(1, -1, 2)];
    table.contribute({ ids: device.from(Int32Array.of(2, 2)), source: device.from(a, [2, D]), scale: 0.5 });
    const coef = device.from(Float32Array.of(10, 100, 1000), [1, 3]);
    table.contribute({
      ids: device.from(Int32Array.of(0, -1, 2)),
      source: device.from(b, [1, D]),
      coef,
      scale: 1,
    });
    const untouched = [0, 0, 0];
    const two = [0, 1, 2].map(j => 0.5 * (a[j]! + a[D + j]!) + 1000 * b[j]!);
    const given = { source: table, contributions: table.rowGradient.contributions! };
    return { table, given, rows, grads: [[...b].map(x => 10 * x), untouched, two, untouched] };
  }

  it('embeddingUpdate, dense and as a square sum', async () => {
    const { table, given, grads } = contributed();
    embeddingUpdate(device, table.value, given, { kind: 'dense', grad: table.gradTarget() });
    expect(mismatch(await device.read(table.gradient.value!), grads.flat())).toBeUndefined();
    embeddingUpdate(device, table.value, given, { kind: 'dense', grad: table.gradTarget() });
    expect(
      mismatch(
        await device.read(table.gradient.value!),
        grads.flat().map(g => 2 * g),
      ),
    ).toBeUndefined();
    const to = device.from(ZERO());
    embeddingUpdate(device, table.value, given, { kind: 'square-sum', to });
    const sum = valueOf(await device.read(to));
    expect(mismatch(Float32Array.of(sum), [grads.flat().reduce((all, g) => all + g * g, 0)])).toBeUndefined();
    table.clearGrad();
    expect([table.rowGradient.isEmpty, table.gradient.value]).toEqual([true, undefined]);
  });

  it('embeddingUpdate by lazy Adam and by row-wise AdaGrad leaves untouched rows alone', async () => {
    const lazy = contributed();
    const [m, v] = [device.tensor([4, D]), device.tensor([4, D])];
    for (const tensor of [m, v]) fillConstant(device, tensor, 0.25);
    const gradScale = device.from(Float32Array.of(0.5));
    embeddingUpdate(device, lazy.table.value, lazy.given, { kind: 'lazy-adam', m, v, hyper: HYPER }, { gradScale });
    const expected = lazy.grads.flatMap((row, r) =>
      row.map((g, j) => {
        const p = lazy.rows[r * D + j]!;
        return row.every(x => x === 0) ? p : adam({ p, g: g / 2, m: 0.25, v: 0.25 }, HYPER).p;
      }),
    );
    expect(mismatch(await device.read(lazy.table.value), expected)).toBeUndefined();

    const { table, given, rows, grads } = contributed();
    const state = device.from(Float32Array.of(1, 2, 3, 4));
    const adagrad = { kind: 'row-adagrad', state, lr: 0.1, eps: 1e-3, weightDecay: 0.2 } as const;
    embeddingUpdate(device, table.value, given, adagrad);
    const states = grads.map((row, r) => r + 1 + row.reduce((sum, g) => sum + g * g, 0) / D);
    expect(mismatch(await device.read(state), states)).toBeUndefined();
    const updated = grads.flatMap((row, r) =>
      row.map((g, j) => {
        const p = rows[r * D + j]!;
        return row.every(x => x === 0) ? p : p * (1 - 0.1 * 0.2) - (0.1 * g) / (Math.sqrt(states[r]!) + 1e-3);
      }),
    );
    expect(mismatch(await device.read(table.value), updated)).toBeUndefined();
  });

  it('a row gradient reduces a full list of contributions and continues: nothing is lost, for any number of them', async () => {
    for (const times of [3, 4, 5, 9]) {
      const { table, given, grads } = contributed();
      const both = [...given.contributions];
      for (let i = 1; i < times; i++) for (const contribution of both) table.contribute(contribution);
      const list = table.rowGradient.takeList();
      const [ids, rows] = [await device.read(list.ids), await device.read(list.rows)];
      expect(ids.filter(id => id >= 0)).toEqual(Int32Array.of(0, 2));
      const expected = [0, 2].flatMap(row => grads[row]!.map(g => times * g));
      expect(mismatch(rows.subarray(0, 2 * D), expected)).toBeUndefined();
      expect(table.rowGradient.isEmpty).toBe(true);
    }
  });
});

describe('elementwise ops', () => {
  it('add, lerp and the casts', async () => {
    const [x, y] = [device.from(Float32Array.of(1, 2, 3)), device.from(Float32Array.of(10, 20, 30))];
    add(device, 2, { x, y });
    expect(mismatch(await device.read(y), [12, 24, 36])).toBeUndefined();
    lerp(device, 0.25, { x, y });
    expect(mismatch(await device.read(y), [9.25, 18.5, 27.75])).toBeUndefined();
    const half = device.tensor([1, 3], 'f16');
    castToF16(device, device.from(Float32Array.of(1, -2.5, 65536)), half);
    expect(await device.read(half)).toEqual(Uint16Array.of(0x3c00, 0xc100, 0x7c00));
    castToF32(device, half, y);
    expect(await device.read(y)).toEqual(Float32Array.of(1, -2.5, Number.POSITIVE_INFINITY));
  });

  it('add and fill go by rows where columns are a part of a wider tensor', async () => {
    const whole = device.from(
      numbers(12, i => i),
      [3, 4],
    );
    fillConstant(device, whole.columns(3, 1), -1);
    add(device, 1, { x: device.from(Float32Array.of(100, 200, 300), [3, 1]), y: whole.columns(0, 1) });
    expect(mismatch(await device.read(whole), [100, 1, 2, -1, 204, 5, 6, -1, 308, 9, 10, -1])).toBeUndefined();
  });
});

describe('random values', () => {
  const moments = (values: Float32Array): { mean: number; std: number } => {
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
    return { mean, std: Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length) };
  };

  it('have the stated distribution and depend on the key alone', async () => {
    const to = device.tensor([100, 400]);
    fillUniform(device, to, KEY, { low: -1, high: 3 });
    const uniform = await device.read(to);
    expect(moments(uniform).mean).toBeCloseTo(1, 1);
    expect(uniform.every(x => x >= -1 && x < 3)).toBe(true);
    fillNormal(device, to, KEY, { mean: 5, std: 2 });
    const normal = await device.read(to);
    expect(moments(normal).mean).toBeCloseTo(5, 1);
    expect(moments(normal).std).toBeCloseTo(2, 1);
    fillTruncNormal(device, to, KEY, { std: 1, low: -0.5, high: 1 });
    const cut = await device.read(to);
    expect(cut.every(x => x >= -0.5 && x <= 1)).toBe(true);
    expect(moments(cut).mean).toBeGreaterThan(0.1);
    fillNormal(device, to, KEY, { mean: 5, std: 2 });
    expect(await device.read(to)).toEqual(normal);
    fillNormal(device, to, { ...KEY, purpose: 4 }, { mean: 5, std: 2 });
    expect(await device.read(to)).not.toEqual(normal);
  });

  it('drawNegatives: uniform, by popularity, from the batch', async () => {
    const ids = device.tensor([1000, 16], 'i32');
    const shares = async (items: number): Promise<number[]> => {
      const counts = Array.from({ length: items }, () => 0);
      for (const id of await device.read(ids)) counts[id]!++;
      return counts.map(count => count / ids.size);
    };
    drawNegatives(device, ids, KEY, { kind: 'uniform', first: 2, count: 3 });
    expect((await shares(5)).map(share => share.toFixed(1))).toEqual(['0.0', '0.0', '0.3', '0.3', '0.3']);
    const table = aliasTable(device, device.from(Float32Array.of(1, 0, 3, 6)));
    drawNegatives(device, ids, KEY, { kind: 'popularity', table });
    expect((await shares(4)).map(share => share.toFixed(1))).toEqual(['0.1', '0.0', '0.3', '0.6']);
    expect(mismatch((await device.read(table.logq)).slice(2), [Math.log(0.3), Math.log(0.6)])).toBeUndefined();
    const positives = device.from(Int32Array.of(4, -1, 4, 1));
    drawNegatives(device, ids, KEY, { kind: 'in-batch', positives });
    expect((await shares(5)).map(share => share.toFixed(2).slice(0, 3))).toEqual(['0.0', '0.3', '0.0', '0.0', '0.6']);
  });
});

describe('retrieval', () => {
  it('topK, targetScores, countAhead and expSum, with exclusions, ties and too few items', async () => {
    const table = device.from(Float32Array.of(1, 0, 0, 1, 1, 1, 2, 0, 1, 0), [5, 2]);
    const queries = device.from(Float32Array.of(1, 0, 0, 1), [2, 2]);
    const excluded = { offsets: device.from(Int32Array.of(0, 1, 4)), ids: device.from(Int32Array.of(3, 0, 3, 4)) };
    const found = topK(device, queries, table, { k: 3, excluded });
    expect(await device.read(found.ids)).toEqual(Int32Array.of(0, 2, 4, 1, 2, -1));
    const none = Number.NEGATIVE_INFINITY;
    expect(await device.read(found.scores)).toEqual(Float32Array.of(1, 1, 1, 1, 1, none));
    const targets = device.from(Int32Array.of(4, 3));
    const bars = targetScores(device, queries, table, targets);
    expect(await device.read(bars)).toEqual(Float32Array.of(1, 0));
    const ahead = { bars, places: targets };
    expect(await device.read(countAhead(device, queries, table, { ...ahead, excluded }))).toEqual(Int32Array.of(2, 2));
    expect(await device.read(countAhead(device, queries, table, ahead))).toEqual(Int32Array.of(3, 3));
    const most = device.from(Float32Array.of(2, 1));
    const sums = await device.read(expSum(device, queries, table, { bars: most, bits: 40 }));
    const [e1, e2] = [Math.exp(-1), Math.exp(-2)];
    const expected = [1 + 3 * e1 + e2, 2 + 3 * e1]; // scores 1 0 1 2 1 below 2; 0 1 1 0 0 below 1
    expect(
      mismatch(
        Float32Array.from(sums, sum => Number(sum) / 2 ** 40),
        expected,
      ),
    ).toBeUndefined();
  });
});
