// `loss.kind: auto`: a small catalogue is trained with full softmax, a large one with a sampled loss; the choice is saved in the run,
// and an existing run is not measured again.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { synthesize, train } from '../../src/index.js';
import { chooseLoss } from '../../src/jobs/choose-loss.js';
import { RunFolder } from '../../src/train/run-folder.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-auto-'));
afterAll(() => rmSync(folder, { recursive: true }));

const config = resolveConfig({
  model: { d: 32, maxLength: 50 },
  loss: { kind: 'auto' },
  optimizer: { table: 'lazy-adam' },
  batch: { tokens: 512 },
  threads: 2,
});

test('the cheaper of the two is chosen, and the reason has both times', async () => {
  // So many draws that no disturbance of the machine can make them cheaper than sixty items, nor 300,000 cheaper than 128.
  const many = { ...config, loss: { ...config.loss, negatives: { ...config.loss.negatives, count: 2048 } } };
  const small = await chooseLoss(many, 60);
  expect(small.config.loss.kind).toBe('full-softmax');
  expect(small.choices).toMatchObject([{ key: 'loss.kind', value: 'full-softmax' }]);
  expect(small.choices[0]!.reason).toMatch(/512 tokens.*full softmax .* ms, sampled .* ms/);
  const large = await chooseLoss(config, 300_000);
  expect(large.config.loss.kind).toBe('sampled-softmax');
});

test('what was chosen before is taken as it is, and another loss is left alone', async () => {
  const known = await chooseLoss(config, 300_000, 'full-softmax');
  expect(known.config.loss.kind).toBe('full-softmax');
  expect(known.choices).toEqual([]);
  const bce = resolveConfig({ loss: { kind: 'bce' } });
  expect((await chooseLoss(bce, 60)).config).toBe(bce);
});

test('the run says what it trains, and is continued with it', async () => {
  const [log, run] = [join(folder, 'log.csv'), join(folder, 'run')];
  await synthesize({ out: log, users: 60, videos: 50, meanLength: 20, margin: false });
  const settings = {
    model: { d: 16, blocks: 1, maxLength: 20 },
    loss: { kind: 'auto' },
    epochs: 1,
    threads: 2,
  } as const;
  const first = await train({ data: log, config: settings, run });
  const { kind } = RunFolder.open(run).description.config.loss;
  expect(['full-softmax', 'sampled-softmax']).toContain(kind);
  const again = await train({ data: log, config: settings, run });
  expect(again.digest).toBe(first.digest);
});
