// Whole training steps against PyTorch in double precision: embedding, dropout, HSTU with time bias, drawn negatives,
// sampled softmax over normalised rows, dense AdamW. `make_steps.py` says how the file came about; it draws the random
// numbers from the published algorithm, not from ours.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { Device } from '../../src/native/device.js';
import { buildDefinition } from '../../src/nn/build.js';
import { Learner } from '../../src/train/learner.js';
import { SafetensorsFile } from '../../src/util/safetensors.js';
import { firstMismatch } from '../support/close.js';
import { readAllRows } from '../../src/ops/copy-rows.js';

const STEPS = 4;
const CONFIG = resolveConfig({
  seed: 5,
  model: { kind: 'hstu', d: 24, blocks: 2, heads: 2, maxLength: 20, outputSlots: 1, dropout: 0.2 },
  loss: { kind: 'sampled-softmax', temperature: 0.05, negatives: { kind: 'uniform', count: 8 } },
  optimizer: { lr: 1e-2, beta1: 0.9, beta2: 0.98, table: 'adamw' },
});

test.each([1, 2])('four steps with dropout and sampled softmax equal PyTorch (threads %i)', async threads => {
  using device = Device.open({ threads });
  const file = new SafetensorsFile(fileURLToPath(new URL('steps.safetensors', import.meta.url)));
  const definition = buildDefinition(CONFIG.model, 86_400);
  const shape = {
    definition,
    items: 40,
    positions: 21,
    dropout: 0.2,
    actions: 0,
    sideFeatures: [],
    scoring: CONFIG.loss,
  };
  const learner = new Learner({ device, config: CONFIG, shape, counts: new Int32Array(40).fill(1) });
  for (const { name, value } of learner.model.all) device.upload(value, file.read(`before.${name}`, 'F32'));
  const batch = {
    offsets: file.read('offsets', 'I32'),
    item: file.read('item', 'I32'),
    target: file.read('target', 'I32'),
    time: file.read('time', 'I64'),
    nextTime: file.read('next_time', 'I64'),
  };
  const losses = new Float32Array(STEPS);
  for (let step = 1; step <= STEPS; step++) {
    losses[step - 1] = await (await learner.step([batch], { step, totalSteps: STEPS })).loss;
  }
  expect(firstMismatch(losses, file.read('losses', 'F32'), { absolute: 0, relative: 1e-5 })).toBeUndefined();
  for (const { name, value } of learner.model.all) {
    const got = await readAllRows(device, value);
    // A step of Adam moves a weight by up to the learning rate, whatever its gradient: rounding of a tiny one shows.
    const mismatch = firstMismatch(got, file.read(`after.${name}`, 'F32'), { absolute: 2e-4, relative: 1e-4 });
    expect([name, mismatch]).toEqual([name, undefined]);
  }
  file.close();
});
