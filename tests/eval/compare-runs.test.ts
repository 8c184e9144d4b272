import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compareRuns, evaluate, train } from '../../src/index.js';
import { readRanks } from '../../src/eval/rank-file.js';
import { metricOf } from '../../src/eval/metrics.js';
import { SMALL_CONFIG, smallRun } from '../support/small-run.js';

test('runs are compared by the ranks they left behind; without them the run is tested again; other data is refused', async () => {
  using small = await smallRun();
  const other = join(small.folder, 'other');
  await train({ data: join(small.run, 'store'), run: other, config: { ...SMALL_CONFIG, seed: 2 } });

  const ranks = readRanks(join(small.run, 'ranks.safetensors'));
  const report = await evaluate(small.run, { segments: true });
  expect(metricOf(ranks, 'ndcg@10')).toBeCloseTo(report.metrics['model']!['ndcg@10']!.value, 12);
  expect(report.segments!.filter(({ by }) => by === 'target').reduce((n, { cases }) => n + cases, 0)).toBe(
    report.cases,
  );

  const saved = await compareRuns(small.run, other);
  expect(saved.metrics['ndcg@10']!.a).toBeCloseTo(report.metrics['model']!['ndcg@10']!.value, 12);
  expect(saved.cases).toBe(report.cases);
  rmSync(join(other, 'ranks.safetensors'));
  expect(await compareRuns(small.run, other)).toEqual(saved);

  // Ranks of other weights than the report's are not believed.
  const file = join(small.run, 'report.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/"digest": "..../, '"digest": "0000'));
  expect(await compareRuns(small.run, other)).toEqual(saved);

  const elsewhere = join(small.folder, 'elsewhere');
  await train({ data: small.log, run: elsewhere, config: SMALL_CONFIG, prepare: { split: 'user:0.2' } });
  await expect(compareRuns(small.run, elsewhere)).rejects.toMatchObject({ code: 'not-comparable' });
});
