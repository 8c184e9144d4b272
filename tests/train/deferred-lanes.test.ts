// Lanes that read one large table: their contributions are deferred and summed in one call. The plain form is a list per lane, as
// with staged rows.
import { describe, expect, test } from 'vitest';
import { drawBatch } from '../../src/bench/random-batch.js';
import { resolveConfig } from '../../src/config/resolve.js';
import type { ConfigInput } from '../../src/config/schema.js';
import { Device } from '../../src/native/device.js';
import { buildDefinition } from '../../src/nn/build.js';
import { SECONDS_PER_DAY } from '../../src/nn/time-bias.js';
import { Learner } from '../../src/train/learner.js';

/** More than 2^18 numbers, so that the kernel may sum lanes in one call. */
const [ITEMS, WIDTH] = [5000, 64];
const STEPS = 3;

interface Run {
  digest: string;
  losses: number[];
  /** Calls per step. */
  reductions: number;
  additions: number;
}

async function run(lanes: number, staged: boolean, optimizer: ConfigInput['optimizer'], threads = 2): Promise<Run> {
  using device = Device.open({ threads });
  const config = resolveConfig({
    model: { kind: 'hstu', d: WIDTH, blocks: 1, heads: 1, maxLength: 20 },
    loss: { negatives: { count: 16 } },
    optimizer,
    batch: { tokens: 40, lanes },
  });
  const { dropout, maxLength } = config.model;
  const definition = buildDefinition(config.model, SECONDS_PER_DAY);
  const shape = { definition, items: ITEMS, positions: maxLength + 1, dropout, actions: 0, sideFeatures: [] };
  const counts = new Int32Array(ITEMS).fill(1);
  const learner = new Learner({ device, config, shape: { ...shape, scoring: config.loss }, counts, staged });
  // Items are few, so that most rows are of several lanes; the third lane is empty.
  const batches = Array.from({ length: lanes }, (_, lane) =>
    lane === 2 ? undefined : drawBatch([9, 20, lane + 1], 30),
  );
  const losses: number[] = [];
  device.recordSpans(true);
  for (let step = 1; step <= STEPS; step++) {
    losses.push(await (await learner.step(batches, { step, totalSteps: STEPS })).loss);
  }
  await device.sync();
  const calls = device.spans().spans.map(({ op }) => op);
  const perStep = (op: string): number => calls.filter(name => name === op).length / STEPS;
  const digest = await learner.digest();
  return { digest, losses, reductions: perStep('embedding_reduce'), additions: perStep('sparse_add') };
}

describe.each(['adamw', 'lazy-adam', 'row-adagrad'] as const)('%s', table => {
  test.each([2, 4, 7, 8, 13])('%i lanes summed in few calls have the bits of their lists', async lanes => {
    const lists = await run(lanes, true, { table });
    for (const threads of [1, 2, 3]) {
      const deferred = await run(lanes, false, { table }, threads);
      expect(deferred.digest).toBe(lists.digest);
      expect(deferred.losses).toEqual(lists.losses);
      expect(deferred.additions).toBeLessThan(lists.additions || 1);
      expect(deferred.reductions).toBeLessThan(lists.reductions);
    }
  });
});

test('where gradients are clipped they are summed once, into lists', async () => {
  const [lists, clipped] = [await run(8, true, { clip: 0.1 }), await run(8, false, { clip: 0.1 })];
  expect(clipped).toEqual(lists);
});
