// A run with priors from end to end: fitted after training, stored, and the same wherever the run is used.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type ConfigInput, evaluate, openRecommender, train, type TrainReport } from '../../src/index.js';
import { Random } from '../../src/util/random.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-priors-'));
const run = join(folder, 'run');
const CONFIG: ConfigInput = {
  recipe: 'kuairand-pure-hstu',
  model: { d: 16, heads: 1, maxLength: 20 },
  batch: { tokens: 512 },
  optimizer: { lr: 1e-2 },
  epochs: 4,
  priors: 'auto',
  evaluation: { cutoffs: [1, 10], exclude: 'none' },
};
let report: TrainReport;

beforeAll(async () => {
  // People who mostly come back to one of their last few items.
  const random = new Random(3, 'log');
  const lines = ['user_id,item_id,time_s'];
  for (let user = 0; user < 150; user++) {
    const own: number[] = [];
    for (let i = 0; i < 12; i++) {
      own.push(random.uniform() < 0.7 && i > 2 ? own[i - 1 - random.below(3)]! : random.below(80));
      lines.push(`${user},${own[i]},${1_600_000_000 + user + 3600 * i}`);
    }
  }
  const log = join(folder, 'log.csv');
  writeFileSync(log, lines.join('\n'));
  report = await train({ data: log, config: CONFIG, run });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

test('priors are fitted where they help, and lift a model that has hardly learnt', () => {
  const file: unknown = JSON.parse(readFileSync(join(run, 'priors.json'), 'utf8'));
  const { alone, together } = z.object({ alone: z.number(), together: z.number() }).parse(file);
  expect(together).toBeGreaterThan(alone);
  const { metrics, priors, selfFirst, repeatedTargets } = report.test!;
  expect(priors!.shares.ownAge + priors!.shares.ownCount).toBeGreaterThan(0.25); // 2 of 16 components
  expect(metrics['model']!['ndcg@10']!.value).toBeGreaterThan(metrics['model alone']!['ndcg@10']!.value);
  expect(repeatedTargets).toBeGreaterThan(0.5);
  expect(selfFirst).toBeGreaterThanOrEqual(0);
});

test('evaluating the run later, and a recommendation, use them too', async () => {
  expect((await evaluate(run)).metrics).toEqual(report.test!.metrics);
  using recommender = openRecommender(run);
  const history = recommender.historyOf(7);
  const at = history.at(-1)!.time! + 3600;
  const top = await recommender.recommend(history, { k: 10, at });
  // The run is evaluated with repeats, so they are recommended; nine in ten of such lists hold an own item on top.
  const own = new Set(history.map(event => event.item));
  expect(own.has(top[0]!.item)).toBe(true);
  const fresh = await recommender.recommend(history, { k: 10, at, exclude: 'history' });
  for (const { item } of fresh) expect(own.has(item)).toBe(false);
});

test('the moment is now by default, at most the longest gap of the log after the last event', async () => {
  using recommender = openRecommender(run);
  const history = recommender.historyOf(7);
  const last = history.at(-1)!.time!;
  const now = await recommender.recommend(history, { k: 5 });
  expect(now).toEqual(await recommender.recommend(history, { k: 5, at: last + 3600 }));
  const state = async (options = {}) => (await recommender.embedHistories([history], options))[0];
  expect(await state()).toEqual(await state({ at: last + 3600 }));
  expect(await state()).not.toEqual(await state({ at: last + 4e8 }));
  expect(recommender.parseMoment('2020-09-13T12:26:40Z')).toBe(1_600_000_000);
});
