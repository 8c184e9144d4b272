// Runs that are not as they usually are: nanoseconds, weights that do not fit, places that cannot be written.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { type ConfigInput, exportWeights, openRecommender, train } from '../../src/index.js';
import { RunFolder } from '../../src/train/run-folder.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-odd-'));
afterAll(() => rmSync(folder, { recursive: true }));

const config: ConfigInput = {
  model: { d: 8, blocks: 1, maxLength: 12 },
  batch: { tokens: 128 },
  epochs: 1,
  threads: 2,
  priors: 'off',
};
/** Above 2^53: in a double, steps of 100 ns would be ties. */
const START = 1_700_000_000_000_000_000n;
const log = join(folder, 'log.csv');
const run = join(folder, 'run');

beforeAll(async () => {
  const rows = Array.from({ length: 240 }, (_, i) => `u${i % 12},i${(i * 7) % 19},${START + BigInt(i) * 100n}`);
  writeFileSync(log, `user,item,time\n${rows.toReversed().join('\n')}\n`);
  await train({ data: log, config, run });
}, 60_000);

test('a log in nanoseconds is trained on, in its own order, and answered', async () => {
  using recommender = openRecommender(run);
  const history = recommender.historyOf('u3');
  const wanted = Array.from({ length: 20 }, (_, k) => `i${((3 + 12 * k) * 7) % 19}`);
  expect(history.map(({ item }) => item)).toEqual(wanted);
  const [first] = await recommender.recommend(history, { k: 3, exclude: 'none' });
  expect(Number.isFinite(first!.score)).toBe(true);
});

test.skipIf(process.platform !== 'linux')('opening a run that fails gives its threads back', () => {
  const weights = join(folder, 'torn.safetensors');
  writeFileSync(weights, 'no weights');
  const threads = () => readdirSync('/proc/self/task').length;
  expect(() => openRecommender(run, { weights })).toThrow('torn.safetensors');
  const before = threads();
  for (let k = 0; k < 5; k++) expect(() => openRecommender(run, { weights })).toThrow('torn.safetensors');
  expect(threads()).toBeLessThanOrEqual(before + 1); // Node's own may come and go
});

test('a run that was written before its config had some key keeps its checkpoints', async () => {
  const path = join(folder, 'older');
  const { priors: _newer, ...older } = resolveConfig({});
  const place = { relative: 'x', absolute: 'x' };
  const decided = { model: 'hstu', store: place, fingerprint: 'f', content: 'c', items: 3 };
  mkdirSync(path);
  // As an earlier version of the program would have written it.
  const written = RunFolder.create(path, {
    ...decided,
    config: Object.assign(resolveConfig({}), { priors: undefined }),
  });
  await written.checkpoints().begin(4);
  await written.checkpoints().seal({ step: 4, best: null, state: {}, files: {} });
  expect(JSON.parse(readFileSync(join(path, 'run.json'), 'utf8'))).toMatchObject({ config: older });
  const opened = RunFolder.open(path);
  expect(opened.description.config.priors).toBe(resolveConfig({}).priors);
  expect(opened.checkpoints().latest()).toMatchObject({ checkpoint: { step: 4 }, refused: [] });
  const continued = RunFolder.create(path, { ...decided, config: resolveConfig({}) });
  expect(continued.checkpoints().latest()).toMatchObject({ checkpoint: { step: 4 }, refused: [] });
});

test('an export that cannot be finished leaves what was there, and nothing half written', async () => {
  const out = join(folder, 'out');
  mkdirSync(join(out, 'taken', 'inside'), { recursive: true });
  await expect(exportWeights(run, join(out, 'taken'))).rejects.toThrow('taken');
  expect(readdirSync(out)).toEqual(['taken']);
  await exportWeights(run, join(out, 'new', 'weights.safetensors'));
  expect(readdirSync(join(out, 'new'))).toEqual(['weights.safetensors']);
  // What a killed export left goes with the next one; what a living one is writing stays.
  const gone = spawnSync('true').pid;
  for (const pid of [gone, process.ppid]) writeFileSync(join(out, 'new', `.weights.safetensors.${pid}.tmp`), 'half');
  await exportWeights(run, join(out, 'new', 'weights.safetensors'));
  const left = [`.weights.safetensors.${process.ppid}.tmp`, 'weights.safetensors'];
  expect(readdirSync(join(out, 'new')).sort()).toEqual(left);
});

test('every package that a user installs, on any platform, has a hash in the lock file', () => {
  const lock: { packages: Record<string, { integrity?: string; dev?: boolean }> } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8'),
  );
  const { '': _root, ...packages } = lock.packages;
  const bare = Object.entries(packages).filter(([, { integrity, dev }]) => integrity === undefined && !dev);
  expect(bare.map(([name]) => name)).toEqual([]);
});
