// Runs without a setting, but for few epochs to keep the test short: what the rules and the priors make of a log.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { synthesize, train, type TrainReport } from '../../src/index.js';
import { Random } from '../../src/util/random.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-defaults-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function defaultRun(name: string, epochs: number): Promise<TrainReport> {
  return await train({ data: join(folder, `${name}.csv`), run: join(folder, name), config: { epochs } });
}

/** Relative lead of the model's ndcg@10 over the best single baseline. */
function lead({ test: report }: TrainReport): number {
  const ndcg = (ranker: string) => report!.metrics[ranker]!['ndcg@10']!.value;
  return ndcg('model') / Math.max(ndcg('popularity'), ndcg('first-order Markov'), ndcg('recency')) - 1;
}

test('few users: above the baselines, and training that stopped short says so', async () => {
  await synthesize({ out: join(folder, 'few.csv'), users: 150, videos: 200, meanLength: 80, seed: 2, margin: false });
  const report = await defaultRun('few', 3);
  expect(report.stillImproving).toBe(true);
  expect(report.test!.exclude).toBe('history');
  expect(lead(report)).toBeGreaterThan(0.05);
}, 60_000);

test('people who come back: nothing is left out, recency is beaten, and what was just seen is not recommended', async () => {
  // Everybody has a few favourites and never takes the same one twice in a row.
  const random = new Random(9, 'favourites');
  const lines = ['user_id,item_id,time_s'];
  for (let user = 0; user < 300; user++) {
    const favourites = Array.from({ length: 4 }, () => random.below(400));
    let last = -1;
    for (let i = 0; i < 20; i++) {
      const choices = favourites.filter(item => item !== last);
      last = random.uniform() < 0.8 ? choices[random.below(choices.length)]! : random.below(400);
      lines.push(`${user},${last},${1_600_000_000 + 100 * i + user}`);
    }
  }
  writeFileSync(join(folder, 'favourites.csv'), lines.join('\n'));
  const report = await defaultRun('favourites', 3);
  expect(report.test!.exclude).toBe('none');
  expect(report.test!.selfFirst).toBeLessThan(0.05);
  expect(lead(report)).toBeGreaterThan(0.05);
}, 60_000);
