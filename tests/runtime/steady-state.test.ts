// A training step in steady state: no memory from the system, no heap allocation on stream and worker threads, no handle
// left behind, no growth over thousands of steps; and the same bits for any number of threads.
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import type { ConfigInput } from '../../src/config/schema.js';
import { drawBatch } from '../../src/bench/random-batch.js';
import { Device } from '../../src/native/device.js';
import { buildDefinition } from '../../src/nn/build.js';
import { Learner } from '../../src/train/learner.js';
import { Tape } from '../../src/ops/tape.js';
import { TinyModel, tinyBatch } from '../support/tiny-model.js';

const LENGTHS = [17, 0, 1, 40, 6, 23];

type Figure = 'systemAllocations' | 'workerAllocations' | 'tensors' | 'reservedBytes';

const MOST_ROUNDS = 10;

/**
 * Runs the steps until a round leaves the figures as they were: what they were before and after the last round. JavaScript
 * and the streams take blocks from one arena side by side, so the most that is ever needed at once may be met late; steps
 * that allocate each time never settle.
 */
async function settle(device: Device, figures: readonly Figure[], steps: () => Promise<void>): Promise<number[][]> {
  const look = (): number[] => {
    const stats = device.stats();
    return figures.map(figure => stats[figure]);
  };
  let [before, after]: number[][] = [[], look()];
  for (let round = 0; round < MOST_ROUNDS && !isDeepStrictEqual(before, after); round++) {
    before = after;
    await steps();
    await device.sync();
    after = look();
  }
  return [before!, after!];
}

/** The step that `turbogr train` runs. */
function shippedStep(device: Device, config: ConfigInput): (count: number) => Promise<void> {
  const items = 300;
  const lengths = [17, 1, 40, 6, 23];
  const resolved = resolveConfig({
    ...config,
    model: { size: 'small', maxLength: 40, ...config.model },
    batch: { tokens: 128, lanes: config.batch?.lanes ?? 1 },
  });
  const shape = {
    definition: buildDefinition(resolved.model, 86_400),
    items,
    positions: 41,
    actions: 0,
    sideFeatures: [],
  };
  const learner = new Learner({
    device,
    config: resolved,
    shape: { ...shape, dropout: resolved.model.dropout, scoring: resolved.loss },
    counts: new Int32Array(items).fill(1),
  });
  const batches = Array.from({ length: resolved.batch.lanes }, (_, lane) =>
    lane === 1 ? undefined : drawBatch(lengths, items),
  );
  let step = 0;
  return async count => {
    for (let i = 0; i < count; i++) await (await learner.step(batches, { step: ++step, totalSteps: 10_000 })).loss;
  };
}

describe('a steady-state training step', () => {
  it.each<[string, ConfigInput]>([
    ['hstu, sampled softmax, lazy Adam', { optimizer: { table: 'lazy-adam' } }],
    ['fuxi, row-wise AdaGrad, average', { model: { kind: 'fuxi' }, optimizer: { table: 'row-adagrad', ema: 0.99 } }],
    [
      'four lanes, one of them empty, lazy Adam',
      { batch: { tokens: 128, lanes: 4 }, optimizer: { table: 'lazy-adam' } },
    ],
    ['sasrec, full softmax, dense AdamW', { model: { kind: 'sasrec' }, loss: { kind: 'full-softmax' } }],
  ])('allocates nothing, not from the system, not on the heap of a worker: %s', async (_, config) => {
    using device = Device.open({ threads: 2 });
    const run = shippedStep(device, config);
    await run(20);
    await device.sync();
    const figures = ['systemAllocations', 'workerAllocations', 'tensors'] as const;
    const [before, after] = await settle(device, figures, () => run(40));
    expect(after).toEqual(before);
  });

  it('leaves no handle behind, also when its tape is thrown away before backward', async () => {
    using device = Device.open({ threads: 1 });
    const model = new TinyModel(device, 1);
    const batch = tinyBatch(LENGTHS, 1);
    await model.step(1, batch);
    const { tensors } = device.stats();
    for (const training of [true, false]) {
      const tape = new Tape(device, { training });
      const { inputs } = model.forward(tape, batch);
      tape.dispose();
      for (const table of [model.items, model.actions]) table.clearGrad();
      for (const tensor of inputs) tensor.dispose();
      expect(device.stats().tensors).toBe(tensors);
    }
  });

  it('keeps memory where it was over thousands of steps of changing size', async () => {
    using device = Device.open({ threads: 1 });
    const model = new TinyModel(device, 1);
    const batches = Array.from({ length: 8 }, (_, i) => tinyBatch([5 + i, 0, 20 + i, 1, 3 * i], i));
    const run = async (from: number, to: number): Promise<void> => {
      for (let step = from; step <= to; step++) await model.step(step, batches[step % 8]!);
    };
    await run(1, 300);
    const { rss } = process.memoryUsage();
    await run(301, 2300);
    expect((process.memoryUsage().rss - rss) / 2 ** 20).toBeLessThan(40);
    const [before, after] = await settle(device, ['tensors', 'reservedBytes'], () => run(2301, 2500));
    expect(after).toEqual(before);
  });
});

describe('training', () => {
  it('learns, and gives the same bits for 1, 2 and 3 threads', async () => {
    const run = async (threads: number): Promise<{ losses: number[]; weights: Float32Array }> => {
      using device = Device.open({ threads });
      const model = new TinyModel(device, 7);
      const losses: number[] = [];
      for (let step = 1; step <= 30; step++) losses.push((await model.step(step, tinyBatch(LENGTHS, 3)))[0]!);
      return { losses, weights: await model.weights() };
    };
    const [one, two, three] = [await run(1), await run(2), await run(3)];
    expect(one.losses.at(-1)).toBeLessThan(0.8 * one.losses[0]!);
    for (const other of [two, three]) {
      expect(other.losses).toEqual(one.losses);
      expect(Buffer.from(other.weights.buffer).equals(Buffer.from(one.weights.buffer))).toBe(true);
    }
  });
});
