// Timing of single lanes and of whole steps, for the sections `ladder` and `waiting` of `turbogr bench paper`.

import { expect, it } from 'vitest';
import { laneBatch, timeLanes } from '../../src/bench/paper/time-lanes.js';
import { openLearner, type StepCase } from '../../src/bench/step.js';
import { Device } from '../../src/native/device.js';

const MODEL: StepCase = { kind: 'hstu', d: 32, blocks: 1, heads: 2, tokens: 256, items: 50, table: 'lazy-adam' };

it('a padded lane trains on its real tokens alone, and takes its attention out of its step', async () => {
  using device = Device.open({ threads: 1 });
  const { learner } = openLearner(device, MODEL, 64);
  const real = [64, 5, 9];
  const lanes = [laneBatch(real, real, MODEL.items), laneBatch(real, [64, 64, 64], MODEL.items)];
  const trained = lanes.map(({ target }) => target!.filter(id => id >= 0).length);
  expect(trained).toEqual([78, 78]);
  expect(lanes.map(({ item }) => item.length)).toEqual([78, 192]);
  for (const { step, attention } of await timeLanes(device, learner, lanes, 1)) {
    expect(attention).toBeGreaterThan(0);
    expect(step).toBeGreaterThan(attention);
  }
});

it('a step of several lanes has the same loss with and without overlap', async () => {
  using device = Device.open({ threads: 1 });
  const batches = [laneBatch([20, 30], [20, 30], MODEL.items), laneBatch([40], [40], MODEL.items)];
  const losses: number[] = [];
  for (const overlap of ['off', 'on'] as const) {
    const { learner } = openLearner(device, { ...MODEL, lanes: 2, overlap }, 64);
    losses.push(await (await learner.step(batches, { step: 2, totalSteps: 10 })).loss);
  }
  expect(losses[0]).toBe(losses[1]);
  expect(losses[0]).toBeGreaterThan(0);
});
