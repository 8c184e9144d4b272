// The recommender of a trained run: batches, popularity for empty histories, lists and filters, titles, vectors.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRecommender, type Recommender, synthesize, train } from '../../src/index.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-recommend-'));
let recommender: Recommender;

beforeAll(async () => {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 120, videos: 90, meanLength: 25, margin: false });
  const config = {
    model: { d: 16, blocks: 1, maxLength: 30 },
    batch: { tokens: 512 },
    epochs: 1,
    priors: 'off',
  } as const;
  await train({ data: log, config, run: join(folder, 'run') });
  recommender = openRecommender(join(folder, 'run'));
  const rows = Array.from({ length: recommender.items }, (_, id) => {
    const item = recommender.originalItem(id);
    return `${item},"Film, no. ${item}",${id % 2 === 0 ? 'comedy' : 'drama'},${1900 + id}`;
  });
  const foreign = 'nobody-has-seen-it,Unseen,comedy,2000';
  writeFileSync(join(folder, 'items.csv'), `item_id,title,genre,year\n${[...rows, foreign].join('\n')}\n`);
}, 300_000);
afterAll(() => {
  recommender.close();
  rmSync(folder, { recursive: true });
});

test('several requests at once give what each gives alone', async () => {
  const requests = [1, 5, 9].map(id => ({ history: recommender.historyAt(id), k: id + 2, at: 2e9 }));
  const together = await recommender.recommendMany(requests);
  for (const [i, { history, ...options }] of requests.entries()) {
    expect(await recommender.recommend(history, options)).toEqual(together[i]);
  }
});

test('a user of the log by number is planned as its history is, and wrong times are refused', () => {
  for (const user of [0, 7, 119]) {
    for (const options of [{ at: 2e12 }, { at: 2e12, exclude: 'none' as const, k: 3 }]) {
      const planned = recommender.plan({ history: recommender.historyAt(user), ...options });
      expect(recommender.planAt(user, options)).toEqual(planned);
    }
  }
  const item = recommender.originalItem(0);
  const { history } = recommender.plan({ history: [item, { item, time: 5, action: 2 }, item], at: 9 });
  expect(history).toEqual({
    items: Int32Array.of(0, 0, 0),
    times: Float64Array.of(9, 5, 9),
    actions: Int32Array.of(0, 2, 0),
    at: 9,
  });
  for (const time of [Number.NaN, -1, 0.5, Infinity]) {
    expect(() => recommender.plan({ history: [{ item, time }] })).toThrow('is not a time');
    expect(() => recommender.plan({ history: [item], at: time })).toThrow('is not a time');
  }
});

test('an empty history is answered by popularity, marked so', async () => {
  const [nobody, somebody] = await recommender.recommendMany([
    { history: [], k: 5 },
    { history: recommender.historyAt(0), k: 5 },
  ]);
  expect(nobody!.map(({ basis }) => basis)).toEqual(Array.from({ length: 5 }, () => 'popularity'));
  expect(somebody!.every(({ basis }) => basis === undefined)).toBe(true);
  const counts = nobody!.map(({ score }) => score);
  expect(counts).toEqual(counts.toSorted((a, b) => b - a));
  const unknown = await recommender.recommend(['no such item'], { k: 5, unknown: 'skip' });
  expect(unknown).toEqual(nobody);
  await expect(recommender.recommend(['no such item'])).rejects.toThrow('no such item');
});

test('allow and deny lists hold', async () => {
  const history = recommender.historyAt(3);
  const all = await recommender.recommend(history, { k: 90, exclude: 'none', at: 2e9 });
  const [a, b, c] = [all[4]!.item, all[40]!.item, all[80]!.item];
  const allowed = await recommender.recommend(history, { allow: [c, a, b, 'unknown'], exclude: 'none', at: 2e9 });
  expect(allowed).toEqual([all[4], all[40], all[80]]);
  const denied = await recommender.recommend(history, { k: 90, deny: [a, 'unknown'], exclude: 'none', at: 2e9 });
  expect(denied).toEqual(all.filter(({ item }) => item !== a));
  expect(await recommender.rank(history, [b, a, b], { at: 2e9 })).toEqual([all[4], all[40]]);
  await expect(recommender.rank(history, ['unknown'])).rejects.toThrow('unknown');
});

test('what plain JavaScript may send is refused by name, and spoils nothing', async () => {
  const asked = (history: string, options: string) =>
    recommender.recommend(JSON.parse(history), { at: 2e9, ...JSON.parse(options) });
  for (const history of ['[null]', '[{}]', '[[1]]', '[true]', '[{"item": null}]'])
    await expect(asked(history, '{}')).rejects.toThrow('a history contains');
  for (const filter of ['5', '"comedy"', '[]', '{"year": null}', '{"year": {"near": 1990}}'])
    await expect(asked('[]', `{"filter": ${filter}}`)).rejects.toThrow('is not a filter');
  expect(await asked('[]', '{"k": 2}')).toHaveLength(2);
});

test('filters on columns of an items file, which also describes items', async () => {
  const history = recommender.historyAt(3);
  await expect(recommender.recommend(history, { filter: { genre: 'comedy' } })).rejects.toThrow('no column "genre"');
  await recommender.loadItems(join(folder, 'items.csv'));
  const all = await recommender.recommend(history, { k: 90, exclude: 'none', at: 2e9 });
  const year = (item: string) => Number(recommender.describe(item)['year']);
  const asked = async (filter: object) =>
    await recommender.recommend(history, { k: 90, exclude: 'none', at: 2e9, filter: { ...filter } });
  expect(await asked({ genre: 'comedy' })).toEqual(all.filter(({ item }) => year(item) % 2 === 0));
  expect(await asked({ genre: { not: 'comedy' }, year: { gte: 1910, lt: 1950 } })).toEqual(
    all.filter(({ item }) => year(item) % 2 === 1 && year(item) >= 1910 && year(item) < 1950),
  );
  expect(await asked({ year: [1903, 1905] })).toEqual(all.filter(({ item }) => [1903, 1905].includes(year(item))));
  expect(await asked({ genre: 'western' })).toEqual([]);
  expect(recommender.describe(all[0]!.item)).toMatchObject({ title: `Film, no. ${all[0]!.item}` });
  await expect(asked({ colour: 'red' })).rejects.toThrow('no column "colour"');
  await expect(recommender.loadItems(join(folder, 'items.csv'), 'no_such')).rejects.toThrow('no column no_such');
});

test('similar items, and vectors whose product is the score', async () => {
  const item = recommender.originalItem(0);
  const near = await recommender.similar(item, { k: 4 });
  expect(near).toHaveLength(4);
  expect(near.every(other => other.item !== item && other.score <= 1.0001)).toBe(true);
  const history = recommender.historyAt(2);
  const [user] = await recommender.embedHistories([history], { at: 2e9 });
  const items = await recommender.embedItems();
  const d = recommender.dimension;
  expect(items).toHaveLength(recommender.items * d);
  const scores = Array.from({ length: recommender.items }, (_, id) =>
    user!.reduce((sum, x, i) => sum + x * items[id * d + i]!, 0),
  );
  const [best] = await recommender.recommend(history, { k: 1, exclude: 'none', at: 2e9 });
  expect(Math.abs(Math.max(...scores) - best!.score)).toBeLessThan(1e-3);
});

test('a request that fails on the device fails alone, also beside good ones', async () => {
  const history = recommender.historyAt(2);
  const good = await recommender.recommend(history, { k: 5, at: 2e9 });
  const bad = [{ ...history[0]!, time: -5 }, ...history.slice(1)];
  for (let round = 0; round < 3; round++) {
    const [refused, answered] = await Promise.allSettled([
      recommender.recommend(bad, { k: 5, at: 2e9 }),
      recommender.recommend(history, { k: 5, at: 2e9 }),
    ]);
    expect(refused).toMatchObject({ status: 'rejected' });
    expect(answered).toEqual({ status: 'fulfilled', value: good });
    expect(await recommender.recommend(history, { k: 5, at: 2e9 })).toEqual(good);
  }
});
