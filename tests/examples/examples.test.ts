// The examples and the README's sample, run as a reader would run them, on a log made here. Each must beat popularity and Markov.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { synthesize } from '../../src/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-examples-'));
const log = join(folder, 'events.csv');

beforeAll(async () => {
  await synthesize({ out: log, users: 500, videos: 300, meanLength: 60, margin: false });
});
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  expect({ status, stderr }).toMatchObject({ status: 0 });
  return stdout;
}

const REPORT = z.object({
  test: z.object({ metrics: z.record(z.string(), z.record(z.string(), z.object({ value: z.number() }))) }),
});

/** How far the model is above the better of popularity and first-order Markov, at the least of the two metrics. */
function lead(path: string): number {
  const report: unknown = JSON.parse(readFileSync(join(folder, path, 'report.json'), 'utf8'));
  const { metrics } = REPORT.parse(report).test;
  const value = (ranker: string, metric: string) => metrics[ranker]![metric]!.value;
  const above = (metric: string) =>
    value('model', metric) - Math.max(value('popularity', metric), value('first-order Markov', metric));
  return Math.min(above('hr@10'), above('ndcg@10'));
}

const JITI = join(root, 'node_modules', 'jiti', 'lib', 'jiti-cli.mjs');

test("the README's sample runs in plain JavaScript on anybody's log", () => {
  const sample = /```js\n([\s\S]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))![1]!;
  // Imported by its address: the folder has no node_modules.
  const script = join(folder, 'sample.mjs');
  writeFileSync(script, sample.replace("'turbogr'", JSON.stringify(join(root, 'dist', 'index.js'))));
  const said = run(script);
  expect(said).toMatch(/item: '\d+'/);
  expect(sample).not.toMatch(/\busing\b/);
});

test('the library example beats the baselines', () => {
  expect(run(JITI, join(root, 'examples', 'library.ts'), 'example')).toContain('hr@10');
  expect(lead('example/run')).toBeGreaterThan(0.02);
});

test('the example of a custom model beats Markov, and its run is named after it', () => {
  expect(run(JITI, join(root, 'examples', 'own-model.ts'), log)).toContain('epoch 1');
  const path = join('runs', 'events-hstu-with-feed-forward');
  expect(lead(path)).toBeGreaterThan(0.02);
  const told = spawnSync(process.execPath, [join(root, 'dist/cli/main.js'), 'recommend', path, '--user', '0'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(told.status).toBe(2);
  expect(told.stderr).toContain('a custom model');
});

test('the example config beats the baselines, and an error is JSON with --json', () => {
  copyFileSync(join(root, 'examples', 'run.yaml'), join(folder, 'run.yaml'));
  const main = join(root, 'dist/cli/main.js');
  expect(run(main, 'train', log, '--config', 'run.yaml', '--run', 'yaml')).toContain('Next: npx turbogr');
  expect(lead('yaml')).toBeGreaterThan(0.02);
  const args = [main, 'train', 'no-such.csv', '--json'];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  expect(status).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'no-data' } });
});
