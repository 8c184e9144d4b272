// An items file for anybody's log: catalogue, features of the model, titles and filters of the answers.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRecommender, type Recommender, SequenceStore, synthesize, train } from '../../src/index.js';
import { OpenRun } from '../../src/jobs/open-run.js';
import { numberBucket } from '../../src/jobs/shape-model.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-features-'));
const run = join(folder, 'run');
let recommender: Recommender;

/** 70 items that occur, and 5 that nobody has seen. */
const ITEMS = Array.from({ length: 75 }, (_, id) => ({
  id: id < 70 ? id : 1000 + id,
  title: `Title ${id}`,
  kind: id % 4 === 0 ? '' : `k${id % 4}`,
  price: id % 5 === 0 ? '' : String(id / 8),
  year: 1990 + (id % 20),
}));

beforeAll(async () => {
  const [log, items] = [join(folder, 'log.csv'), join(folder, 'items.csv')];
  await synthesize({ out: log, users: 60, videos: 70, meanLength: 25, margin: false });
  const rows = ITEMS.map(({ id, title, kind, price, year }) => `${id},${title},${kind},${price},${year}`);
  writeFileSync(items, ['video_id,title,kind,price,year', ...rows, ''].join('\n'));
  const sideFeatures = ['kind', 'price', 'year'];
  const config = { model: { d: 16, blocks: 1, maxLength: 20, sideFeatures }, maxSteps: 3, threads: 1 };
  await train({ data: log, run, config, prepare: { itemsFile: items }, test: false });
  recommender = openRecommender(run);
}, 300_000);

afterAll(() => {
  recommender.close();
  rmSync(folder, { recursive: true });
});

test('listed items belong to the catalogue, and their columns are features of the model', () => {
  const store = SequenceStore.open(join(run, 'store'));
  expect(store.items).toBe(75);
  expect(store.index.features.flatMap(({ columns }) => columns.map(({ name }) => name))).toEqual([
    'title',
    'kind',
    'price',
    'year',
  ]);
  const [kind, price, year] = recommender.run.model.shape.sideFeatures;
  for (const { id, kind: label, price: cost, year: y } of ITEMS) {
    const item = store.itemId(id)!;
    expect(kind!.ofItem[item]).toBe(label === '' ? -1 : Number(label.slice(1)) - 1);
    expect(price!.ofItem[item]).toBe(cost === '' ? -1 : numberBucket(Math.fround(Number(cost))));
    expect(year!.ofItem[item]).toBe(y);
  }
});

test('numbers get buckets by sign and size, four to a doubling', () => {
  expect(numberBucket(0)).toBe(0);
  expect(numberBucket(2) - numberBucket(1)).toBe(4);
  expect(numberBucket(1.001)).toBe(numberBucket(1.1));
  const ascending = [1e-9, 1e-3, 0.5, 1, 1.5, 3, 100, 1e6, 1e12].map(numberBucket);
  expect(ascending).toEqual(ascending.toSorted((a, b) => a - b));
  expect(numberBucket(-3)).toBeGreaterThan(numberBucket(1e30));
  expect(new Set([-1, 1, 0].map(numberBucket)).size).toBe(3);
});

test('answers know titles and filters by the columns of the store', async () => {
  const history = recommender.historyAt(0);
  expect(recommender.describe(1001 + 69)).toEqual({ title: 'Title 70', kind: 'k2', year: 2000 });
  const filtered = await recommender.recommend(history, { k: 75, exclude: 'none', filter: { kind: 'k1' } });
  expect(filtered.map(({ item }) => recommender.describe(item)['kind'])).toEqual(Array(19).fill('k1'));
  const few = await recommender.recommend(history, { allow: [3, 5, 7], deny: [5], exclude: 'none' });
  expect(few.map(({ item }) => item).toSorted()).toEqual(['3', '7']);
  const priced = await recommender.recommend(history, { k: 75, exclude: 'none', filter: { price: { lt: 1 } } });
  expect(priced.map(({ item }) => Number(item)).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 6, 7]);
});

test('items without an event have the mean row of those that share their labels, as answers are given; others their own', async () => {
  const store = SequenceStore.open(join(run, 'store'));
  using trained = new OpenRun(run);
  const d = recommender.dimension;
  const [before, after] = await Promise.all(
    [trained, recommender.run].map(async ({ device, model }) => await device.read(model.scorer.items.value)),
  );
  const row = (rows: ArrayLike<number>, item: number) => Array.from({ length: d }, (_, i) => rows[item * d + i]!);
  const ids = new Map(ITEMS.map(({ id }) => [id, store.itemId(id)!]));
  const seen = ({ id }: { id: number }) => store.itemVocabulary.count(ids.get(id)!) > 0;
  const cold = ITEMS.filter(item => !seen(item) && item.kind !== '');
  expect(cold.length).toBeGreaterThanOrEqual(4);
  for (const { id, kind } of cold) {
    const alike = ITEMS.filter(item => item.kind === kind && seen(item)).map(item => row(before!, ids.get(item.id)!));
    const mean = alike[0]!.map((_, i) => alike.reduce((sum, values) => sum + values[i]!, 0) / alike.length);
    expect(largestDifference(row(after!, ids.get(id)!), mean)).toBeLessThan(1e-6);
  }
  for (const { id } of ITEMS.filter(item => !cold.includes(item))) {
    expect(row(after!, ids.get(id)!)).toEqual(row(before!, ids.get(id)!));
  }
});

test('an empty history is answered by popularity, marked so, within the same filters', async () => {
  const popular = await recommender.recommend([], { k: 3, filter: { kind: 'k1' } });
  expect(popular.map(({ basis }) => basis)).toEqual(['popularity', 'popularity', 'popularity']);
  const counts = popular.map(({ score }) => score);
  expect(counts).toEqual(counts.toSorted((a, b) => b - a));
  for (const { item } of popular) expect(recommender.describe(item)['kind']).toBe('k1');
});

function largestDifference(a: readonly number[], b: readonly number[]): number {
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
}
