// The item table in 16 bits and in a mapped file: it learns, gives the same bits however it is computed, resumes from checkpoints,
// and mapping does not affect results.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.js';
import { Device } from '../../src/native/device.js';
import { copyRows, readAllRows } from '../../src/ops/copy-rows.js';
import { embeddingApply } from '../../src/ops/embedding-update.js';
import { fillConstant } from '../../src/ops/fill.js';
import { toyConfig, toySource, trainToy } from './toy-run.js';

type Optimizer = NonNullable<ConfigInput['optimizer']>;
const STORED: [string, Optimizer][] = [
  ['BF16, row-wise AdaGrad', { table: 'row-adagrad', tableStorage: 'bf16', tableLr: 0.05 }],
  ['FP16, lazy Adam', { table: 'lazy-adam', tableStorage: 'f16' }],
];

describe.each(STORED)('%s', (_, optimizer) => {
  const config = (...more: ConfigInput[]) => toyConfig({ optimizer }, ...more);

  test('learns the walk', async () => {
    const learning = config({ epochs: 6, evaluation: { exclude: 'none', metric: 'hr@1' } });
    const run = await trainToy({ config: learning, source: toySource(360) });
    expect(Math.max(...run.validations)).toBeGreaterThan(0.8);
  });

  test('gives the same bits with 1 and 3 threads, staged, mapped, resumed; others than f32', async () => {
    const some = config({ batch: { tokens: 48, lanes: 2 }, maxSteps: 8 });
    const one = await trainToy({ config: some, threads: 1 });
    expect((await trainToy({ config: some, threads: 3 })).digest).toBe(one.digest);
    expect((await trainToy({ config: some, staged: true })).digest).toBe(one.digest);
    expect((await trainToy({ config: { ...some, mapTables: true } })).digest).toBe(one.digest);
    const plain = { ...some, optimizer: { ...some.optimizer, tableStorage: 'f32' as const } };
    expect((await trainToy({ config: plain })).digest).not.toBe(one.digest);
    const folder = mkdtempSync(join(tmpdir(), 'turbogr-tables-'));
    const stop = new AbortController();
    const onEvent = (event: { kind: string; step?: number }) => void (event.step === 3 && stop.abort());
    const first = await trainToy({ config: some, folder, signal: stop.signal, onEvent });
    expect(first.reason).toBe('interrupted');
    expect((await trainToy({ config: some, folder })).digest).toBe(one.digest);
    rmSync(folder, { recursive: true });
  });
});

test.each(['row-adagrad', 'lazy-adam', 'adamw'] as const)(
  '%s: a mapped table gives the bits of one in memory',
  async table => {
    const config = toyConfig({ optimizer: { table, clip: 1 }, batch: { tokens: 48, lanes: 2 }, maxSteps: 6 });
    const [memory, mapped] = [await trainToy({ config }), await trainToy({ config: { ...config, mapTables: true } })];
    expect(mapped.digest).toBe(memory.digest);
    expect(mapped.losses).toEqual(memory.losses);
  },
);

test('files of mapped tensors have no name, and go with the tensor', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-mapped-'));
  using device = Device.open({ threads: 1 });
  const tensor = device.mappedTensor([1000, 16], 'f32', folder);
  expect(readdirSync(folder)).toEqual([]);
  expect((await device.read(tensor)).every(x => x === 0)).toBe(true);
  fillConstant(device, tensor, 2);
  expect((await device.read(tensor)).every(x => x === 2)).toBe(true);
  tensor.dispose();
  await device.sync();
  expect(() => device.mappedTensor([4, 4], 'f32', join(folder, 'none'))).toThrow('a folder with room');
  rmSync(folder, { recursive: true });
});

test('many small steps move a 16-bit row as far as an f32 one: random rounding has no bias', async () => {
  using device = Device.open({ threads: 2 });
  const [rows, width, steps, lr] = [64, 32, 400, 1e-4];
  const moved = async (dtype: 'f16' | 'bf16', random: boolean): Promise<number> => {
    using table = device.tensor([rows, width], dtype);
    using ones = device.tensor([rows, width]);
    fillConstant(device, ones, 1);
    copyRows(device, { rows: ones, from: 0, to: table, at: 0, count: rows });
    using state = device.tensor([1, rows]);
    fillConstant(device, state, 0);
    for (let step = 1; step <= steps; step++) {
      // The accumulator is the number of the step, so the rate is lr / sqrt(step).
      const update = { kind: 'row-adagrad', state, lr, eps: 0, weightDecay: 0 } as const;
      const rounding = random ? { seed: 1, step, purpose: 0 } : undefined;
      embeddingApply(device, table, { rows: ones }, update, { rounding });
    }
    return (await readAllRows(device, table)).reduce((sum, x) => sum + (1 - x), 0) / (rows * width);
  };
  const expected = Array.from({ length: steps }, (_, i) => lr / Math.sqrt(i + 1)).reduce((sum, x) => sum + x, 0);
  expect(Math.abs((await moved('bf16', true)) / expected - 1)).toBeLessThan(0.1);
  expect(Math.abs((await moved('f16', true)) / expected - 1)).toBeLessThan(0.1);
  // One step is a fraction of what separates two BF16 numbers near 1: rounded to the nearest, nothing moves.
  expect(await moved('bf16', false)).toBe(0);
});

test('settings that contradict one another are refused', () => {
  expect(() => toyConfig({ optimizer: { tableStorage: 'f16' } })).toThrow('adamw');
  const optimizer = { table: 'row-adagrad', tableStorage: 'bf16', ema: 0.9 } as const;
  expect(() => toyConfig({ optimizer })).toThrow('optimizer.ema');
});
