import { expect, test } from 'vitest';
import { drawBatch } from '../../src/bench/random-batch.js';
import { resolveConfig } from '../../src/config/resolve.js';
import { Device } from '../../src/native/device.js';
import { buildDefinition } from '../../src/nn/build.js';
import { countParameters } from '../../src/nn/parameter-spec.js';
import { Learner } from '../../src/train/learner.js';

test("SASRec's variants are different models, and both learn", async () => {
  using device = Device.open({ threads: 1 });
  const batch = drawBatch([12, 7, 20], 30);
  const counts: number[] = [];
  for (const variant of ['textbook', 'meta'] as const) {
    const config = resolveConfig({
      model: { kind: 'sasrec', variant, d: 16, heads: 2, maxLength: 32, dropout: 0 },
      loss: { kind: 'full-softmax' },
      optimizer: { lr: 0.01 },
    });
    const definition = buildDefinition(config.model, undefined);
    counts.push(countParameters(definition.parameters));
    const shape = {
      definition,
      items: 30,
      positions: 33,
      dropout: 0,
      actions: 0,
      sideFeatures: [],
      scoring: config.loss,
    };
    const learner = new Learner({ device, config, shape, counts: new Int32Array(30).fill(1) });
    const losses: number[] = [];
    for (let step = 1; step <= 15; step++) {
      losses.push(await (await learner.step([batch], { step, totalSteps: 15 })).loss);
    }
    expect(losses.at(-1)).toBeLessThan(0.8 * losses[0]!);
  }
  // Two blocks; the textbook has gain and shift of five norms besides.
  const [D, m] = [16, 16];
  const projections = 4 * D * D + 4 * D + D * m + m + m * D + D;
  expect(counts).toEqual([2 * projections + 5 * 2 * D, 2 * projections]);
});
