// Lanes that share packed weights compute what lanes that pack their own do, to the bit, in every model.
import { expect, test } from 'vitest';
import { drawBatch } from '../../src/bench/random-batch.js';
import type { ConfigInput } from '../../src/config/schema.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { Device } from '../../src/native/device.js';
import { Model } from '../../src/nn/model.js';
import { PackedWeights } from '../../src/ops/pack-weight.js';
import { LaneWork } from '../../src/train/lane-work.js';
import { Objective } from '../../src/train/objective.js';
import { TOY_ITEMS, toyConfig, toySource } from './toy-run.js';

const MODELS: readonly ConfigInput['model'][] = [
  { kind: 'hstu' },
  { kind: 'fuxi' },
  { kind: 'sasrec' },
  { kind: 'sasrec', variant: 'meta' },
];

/** Loss and parameter gradients of two lanes, and how many weights were packed. */
async function computeLanes(model: ConfigInput['model'], share: boolean) {
  const config = toyConfig({ model: { d: 48, heads: 1, dropout: 0.2, ...model } });
  using device = Device.open({ threads: 2 });
  const net = new Model(device, shapeModel(config, toySource()), 5);
  const counts = new Int32Array(TOY_ITEMS).fill(1);
  const objective = new Objective({ device, scorer: net.scorer, config: config.loss, counts });
  const packed = share ? new PackedWeights(device) : undefined;
  device.recordSpans(true);
  const losses: Float32Array[] = [];
  for (const lane of [0, 1]) {
    const input = drawBatch([5, 9 + lane], TOY_ITEMS);
    const work = new LaneWork({ device, model: net, objective, input, seed: 5, key: lane, encoderDraws: 9, packed });
    work.read('compute');
    losses.push(await device.read(work.dense(24)));
    work.dispose();
  }
  packed?.dispose();
  const gradients = await Promise.all(
    net.parameters.map(({ grad }) => (grad ? device.read(grad) : Promise.resolve(undefined))),
  );
  const packs = device.spans().spans.filter(({ op }) => op === 'pack_weight').length;
  return { losses, gradients, packs };
}

test.each(MODELS)('%o', async model => {
  const alone = await computeLanes(model, false);
  const shared = await computeLanes(model, true);
  expect(shared.losses).toEqual(alone.losses);
  expect(shared.gradients).toEqual(alone.gradients);
  expect(alone.packs).toBe(0);
  // Both passes of at least two weights, once for both lanes.
  expect(shared.packs).toBeGreaterThanOrEqual(4);
  expect(shared.packs).toBeLessThanOrEqual(2 * shared.gradients.length);
});
