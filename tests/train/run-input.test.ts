// A run and its input: the same command means the same data, or is refused with the available options.

import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import {
  type ConfigInput,
  evaluate,
  exportWeights,
  openRecommender,
  prepare,
  resume,
  synthesize,
  train,
} from '../../src/index.js';
import { exportBundle } from '../../src/jobs/bundle.js';
import { serve } from '../../src/server/serve.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-input-'));
afterAll(() => rmSync(folder, { recursive: true }));

const config: ConfigInput = {
  model: { d: 8, blocks: 1, maxLength: 20 },
  loss: { negatives: { count: 8 } },
  optimizer: { lr: 0.001 },
  batch: { tokens: 512 },
  epochs: 1,
  priors: 'off',
  evaluation: { cutoffs: [10] },
};

let round = 0;
let at: string;
let log: string;
let run: string;

const original = join(folder, 'original.csv');

beforeEach(async () => {
  if (!existsSync(original)) await synthesize({ out: original, users: 60, videos: 80, meanLength: 20, margin: false });
  at = join(folder, String(round++));
  mkdirSync(at);
  log = join(at, 'day.csv');
  run = join(at, 'run');
  copyFileSync(original, log);
});

function header(): string[] {
  return readFileSync(log, 'utf8').split('\n', 1)[0]!.split(',');
}

test('the same log again continues the run, also from another place and with another time stamp', async () => {
  const first = await train({ data: log, config, run });
  expect((await train({ data: log, config, run })).digest).toBe(first.digest);
  utimesSync(log, 1, 1);
  expect((await train({ data: log, config, run })).digest).toBe(first.digest);
  renameSync(log, join(at, 'moved.csv'));
  expect((await train({ data: join(at, 'moved.csv'), config, run })).digest).toBe(first.digest);
});

test('rows appended: refused with the sizes and the choices; --reprepare starts anew on them', async () => {
  const first = await train({ data: log, config, run });
  const rows = readFileSync(log, 'utf8').trimEnd().split('\n');
  appendFileSync(log, `${rows.slice(-40).join('\n')}\n`);
  const again = train({ data: log, config, run });
  await expect(again).rejects.toThrow(/trained on other data than .*day\.csv: .* had \d+ bytes, now \d+/);
  await expect(again).rejects.toMatchObject({
    code: 'input-changed',
    remedy: expect.stringMatching(/--run.*--reprepare.*update .*run .*day\.csv.*resume/),
  });
  const anew = await train({ data: log, config, run, reprepare: true });
  expect(anew.test!.fingerprint).not.toBe(first.test!.fingerprint);
  expect((await train({ data: log, config, run })).digest).toBe(anew.digest);
});

test('another file of the same name and size is told by its content', async () => {
  utimesSync(log, 1e9, 1e9);
  await train({ data: log, config, run });
  const other = join(at, 'other', 'day.csv');
  mkdirSync(join(at, 'other'));
  const lines = readFileSync(log, 'utf8').trimEnd().split('\n');
  writeFileSync(other, `${[lines[0], ...lines.slice(1).toReversed()].join('\n')}\n`);
  await expect(train({ data: other, config, run })).rejects.toThrow('has other content');
  // Neither a time of modification that was set back hides an edit.
  copyFileSync(other, log);
  utimesSync(log, 1e9, 1e9);
  await expect(train({ data: log, config, run })).rejects.toThrow('has other content');
});

test('other columns and other options of prepare are named with both values', async () => {
  const names = header();
  const item = names.find(name => name.includes('video'))!;
  const user = names.find(name => name.includes('user'))!;
  await train({ data: log, config, run });
  await expect(train({ data: log, config, run, prepare: { user: item } })).rejects.toThrow(
    `user guessed as ${user}, now ${item}`,
  );
  await expect(train({ data: log, config, run, prepare: { kCore: 2 } })).rejects.toThrow('kCore left out, now 2');
  // The guessed column by its name is no change.
  await expect(train({ data: log, config, run, prepare: { user } })).resolves.toBeDefined();
});

test('a store with other actions is not the one that the run began with, although the fingerprint is the same', async () => {
  const store = join(at, 'store');
  await prepare({ files: [log], out: store, action: 'is_click' });
  await train({ data: store, config, run });
  await prepare({ files: [log], out: store, action: 'is_like', force: true });
  await expect(resume(run)).rejects.toMatchObject({ code: 'other-data' });
  await expect(train({ data: store, config, run })).rejects.toThrow('other actions or features');
});

test('another config names the key with both values', async () => {
  await train({ data: log, config, run });
  const other = { ...config, optimizer: { lr: 0.5 } };
  await expect(train({ data: log, config: other, run })).rejects.toThrow('optimizer.lr 0.001, now 0.5');
  // Neither threads nor checkpoints decide a result.
  await expect(
    train({ data: log, config: { ...config, threads: 1, checkpoint: { keep: 5 } }, run }),
  ).resolves.toBeDefined();
});

test('a run that ended before its first checkpoint makes room for other settings; a run is no data', async () => {
  await train({ data: log, config, run });
  rmSync(join(run, 'checkpoints'), { recursive: true });
  const other = { ...config, optimizer: { lr: 0.002 } };
  const report = await train({ data: log, config: other, run });
  expect((await train({ data: log, config: other, run })).digest).toBe(report.digest);
  await expect(train({ data: run, config })).rejects.toMatchObject({
    code: 'is-a-run',
    remedy: expect.stringContaining(`resume ${run}`),
  });
});

test('refused input leaves no folder behind', async () => {
  writeFileSync(log, 'a,b\n1,2\n');
  await expect(train({ data: log, config, run })).rejects.toThrow('no column is clearly');
  expect(existsSync(run)).toBe(false);
  writeFileSync(log, 'user_id,item_id,timestamp\n1,2,3\n4,5,6\n');
  await expect(train({ data: log, config, run })).rejects.toThrow('no user has two training events');
  expect(existsSync(run)).toBe(false);
});

test.each([
  ['a loss number', '"temperature": 0.08', '"temperature": 0.06'],
  ['an evaluation number', '"targets": 1', '"targets": 2'],
  ['the fingerprint', '"fingerprint": "', '"fingerprint": "0'],
])('run.json with %s edited is refused', async (_, from, to) => {
  await train({ data: log, config, run });
  const file = join(run, 'run.json');
  const text = readFileSync(file, 'utf8');
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
  await expect(resume(run)).rejects.toMatchObject({ code: 'damaged-run' });
  expect(() => openRecommender(run)).toThrow('edited or damaged');
  writeFileSync(file, text.slice(0, 100));
  await expect(resume(run)).rejects.toThrow('is not JSON');
});

test('initial weights that changed before the first checkpoint are refused', async () => {
  await train({ data: log, config, run });
  const weights = join(at, 'weights.safetensors');
  await exportWeights(run, weights);
  const second = join(at, 'second');
  const before = join(at, 'weights.kept');
  copyFileSync(weights, before);
  const started = await train({ data: join(run, 'store'), config, run: second, initialWeights: weights });
  rmSync(join(second, 'checkpoints'), { recursive: true });
  const bytes = readFileSync(weights);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(weights, bytes);
  await expect(resume(second)).rejects.toMatchObject({ code: 'other-weights' });
  copyFileSync(before, weights);
  expect((await resume(second)).digest).toBe(started.digest);
});

test('a run can be moved, its store repointed, and a bundle needs neither', async () => {
  const first = await train({ data: log, config, run });
  const moved = join(at, 'elsewhere', 'deep');
  mkdirSync(join(at, 'elsewhere'));
  renameSync(run, moved);
  rmSync(log);
  expect((await resume(moved)).digest).toBe(first.digest);
  const history = (() => {
    using recommender = openRecommender(moved);
    return recommender.historyOf(0).map(({ item, time }) => ({ item, ...(time !== undefined && { time }) }));
  })();
  const wanted = await top(moved, history);
  const bundle = join(at, 'new', 'bundle');
  await exportBundle(moved, bundle);
  await expect(exportBundle(moved, bundle)).rejects.toThrow('not empty');

  const store = join(at, 'store-elsewhere');
  renameSync(join(moved, 'store'), store);
  expect(() => openRecommender(moved)).toThrow('is not at');
  expect((await evaluate(moved, { store })).metrics).toEqual(first.test!.metrics);
  using repointed = openRecommender(moved, { store });
  expect(await repointed.recommend(history, { k: 5, at: 2e9 })).toEqual(wanted);
  repointed.close();

  rmSync(moved, { recursive: true });
  rmSync(store, { recursive: true });
  expect(await top(bundle, history)).toEqual(wanted);
  using carried = openRecommender(bundle);
  expect(() => carried.historyOf(0)).toThrow('holds no log');
  const weights = join(bundle, 'weights.safetensors');
  const bytes = readFileSync(weights);
  bytes[bytes.length - 5]! ^= 4;
  writeFileSync(weights, bytes);
  expect(() => openRecommender(bundle)).toThrow('weights.safetensors does not match its checksum');
});

test('readers neither fall back to older weights in silence nor take edited priors for those of the run', async () => {
  await train({ data: log, config: { ...config, epochs: 2, priors: 'auto', checkpoint: { keep: 2 } }, run });
  const priors = join(run, 'priors.json');
  const text = readFileSync(priors, 'utf8');
  for (const edited of [text.replace(/"cases": (\d)/, '"cases": 1$1'), '{', '']) {
    writeFileSync(priors, edited);
    expect(() => openRecommender(run)).toThrow(/priors\.json (is damaged|does not match)/);
  }
  rmSync(priors);
  expect(() => openRecommender(run)).toThrow('priors.json is missing');
  await resume(run);
  expect(readFileSync(priors, 'utf8')).toBe(text);
  const newest = join(run, 'checkpoints', readdirSync(join(run, 'checkpoints')).sort().at(-1)!);
  const weights = join(newest, 'weights.safetensors');
  const bytes = readFileSync(weights);
  bytes[bytes.length - 3]! ^= 8;
  writeFileSync(weights, bytes);
  expect(() => openRecommender(run)).toThrow(/step-\d+ is refused: weights/);
  await expect(evaluate(run)).rejects.toMatchObject({
    code: 'damaged-checkpoint',
    remedy: expect.stringMatching(/Remove that folder, to use step-\d+ .* resume /),
  });
  rmSync(newest, { recursive: true });
  openRecommender(run).close();
});

async function top(path: string, history: { item: string | number; time?: number }[]) {
  using recommender = openRecommender(path);
  return await recommender.recommend(history, { k: 5, at: 2e9 });
}

/** Items that the catalogue does not have, in every event. */
function spoilItems(file: string): void {
  const bytes = readFileSync(file);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const { item }: { item: { data_offsets: [number, number] } } = JSON.parse(bytes.toString('utf8', 8, start));
  bytes.fill(0x11, start + item.data_offsets[0], start + item.data_offsets[1]);
  writeFileSync(file, bytes);
}

test('a damaged store ends training before the first checkpoint', async () => {
  await train({ data: log, config, run });
  const store = join(run, 'store');
  const file = join(store, 'events-00000.safetensors');
  const bytes = readFileSync(file);
  bytes[bytes.length - 9]! ^= 1;
  writeFileSync(file, bytes);
  const second = join(at, 'second');
  await expect(train({ data: store, config, run: second })).rejects.toMatchObject({ code: 'damaged-store' });
  expect(existsSync(join(second, 'checkpoints'))).toBe(false);
  // Unverified, it is still named when something fails because of it.
  spoilItems(file);
  await expect(train({ data: store, config, run: second, verify: false })).rejects.toMatchObject({
    code: 'damaged-store',
  });
  await expect(evaluate(run, { verify: false })).rejects.toMatchObject({ code: 'damaged-store' });
  await expect(evaluate(run)).rejects.toMatchObject({ code: 'damaged-store' });
  await expect(exportBundle(run, join(at, 'bundle'))).rejects.toMatchObject({ code: 'damaged-store' });
  await expect(serve({ run, port: 0 })).rejects.toMatchObject({ code: 'damaged-store' });
});

test('a typo in the config is told by the compiler and at run time, in both forms', async () => {
  // @ts-expect-error: no such key
  await expect(train({ data: log, run, config: { epoch: 1 } })).rejects.toThrow('unknown key "epoch"');
  // @ts-expect-error: no such key
  await expect(train({ data: log, run, config: [config, { epoch: 1 }] })).rejects.toThrow('unknown key "epoch"');
  expect(existsSync(run)).toBe(false);
});

test('what a killed process left half written is removed by the next one that holds the run', async () => {
  await train({ data: log, config, run });
  const halves = ['run.json', 'events.jsonl', 'report.json', 'priors.json'].map(name => `.${name}.4711.tmp`);
  for (const name of halves) writeFileSync(join(run, name), 'half');
  openRecommender(run).close();
  expect(readdirSync(run)).toEqual(expect.arrayContaining(halves)); // a reader changes nothing
  await resume(run);
  expect(readdirSync(run).filter(name => name.endsWith('.tmp'))).toEqual([]);
});
