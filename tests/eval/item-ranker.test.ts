// Many histories at once: the same bits as one by one, candidates and what is left out respected, similar items by cosine.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { type History, ItemRanker, type RankRequest } from '../../src/eval/item-ranker.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { Device } from '../../src/native/device.js';
import { Model } from '../../src/nn/model.js';
import { Random } from '../../src/util/random.js';
import { MemorySource } from '../../src/data/memory-source.js';
import { readAllRows } from '../../src/ops/copy-rows.js';

const V = 3000;
const random = new Random(5, 'item ranker');
const device = Device.open({ threads: 2 });
let model: Model;
let ranker: ItemRanker;

function history(length: number): History {
  return {
    items: Int32Array.from({ length }, () => random.below(V)),
    times: Float64Array.from({ length }, (_, i) => 1_600_000_000 + 60 * i),
    actions: new Int32Array(length),
    at: 1_600_100_000,
  };
}

beforeAll(() => {
  const config = resolveConfig({ model: { d: 48, maxLength: 100, blocks: 2 } });
  const offsets = Int32Array.of(0, 3);
  const time = BigInt64Array.of(1n, 2n, 3n);
  const source = new MemorySource({ items: V, offsets, item: Int32Array.of(0, 1, 2), time, action: new Int32Array(3) });
  model = new Model(device, shapeModel(config, source), 3);
  ranker = new ItemRanker(model, { named: V - 7 });
});
afterAll(() => device.dispose());

const LENGTHS = [1, 2, 15, 16, 17, 63, 99, 100, 101, 250];
const request = (length: number, k: number): RankRequest => {
  const past = history(length);
  return { history: past, k, excluded: past.items };
};

test('a batch gives the bits of its members alone', async () => {
  const requests = LENGTHS.map((length, i) => request(length, 1 + 7 * i));
  const together = await ranker.rank(requests);
  for (const [i, one] of requests.entries()) {
    const [alone] = await ranker.rank([one]);
    expect(together[i]).toEqual(alone);
    expect(alone).toHaveLength(one.k);
  }
  const backwards = await ranker.rank(requests.toReversed());
  expect(backwards.toReversed()).toEqual(together);
});

test('candidates are ranked as in the whole catalogue', async () => {
  const one = request(40, V);
  const [all = []] = await ranker.rank([one]);
  const candidates = { ids: Int32Array.from({ length: 500 }, (_, i) => 3 + 5 * i) };
  const wanted = new Set(candidates.ids);
  const left = new Set(one.excluded);
  const [some, , none] = await ranker.rank([
    { ...one, candidates },
    one,
    { ...one, candidates: { ids: new Int32Array(0) } },
  ]);
  expect(some).toEqual(all.filter(({ item }) => wanted.has(item)));
  expect(some!.every(({ item }) => !left.has(item))).toBe(true);
  expect(none).toEqual([]);
});

test('reserved rows are never recommended', async () => {
  const [all = []] = await ranker.rank([{ ...request(5, V), excluded: new Int32Array(0) }]);
  expect(all).toHaveLength(V - 7);
  expect(Math.max(...all.map(({ item }) => item))).toBe(V - 8);
});

test('vectors of histories and items multiply to the score', async () => {
  const one = request(30, 20);
  const [top = []] = await ranker.rank([one]);
  const [state, rows] = await Promise.all([ranker.states([one.history]), ranker.itemVectors()]);
  const d = model.definition.d;
  for (const { item, score } of top) {
    let dot = 0;
    for (let i = 0; i < d; i++) dot += state[i]! * rows[item * d + i]!;
    expect(Math.abs(dot - score)).toBeLessThan(1e-4 * (1 + Math.abs(score)));
  }
});

test('similar items are the nearest by cosine', async () => {
  const rows = await readAllRows(device, model.items.value);
  const d = model.definition.d;
  const row = (item: number) => rows.subarray(item * d, (item + 1) * d);
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
  const cosine = (a: number, b: number) => dot(row(a), row(b)) / Math.sqrt(dot(row(a), row(a)) * dot(row(b), row(b)));
  const expected = Array.from({ length: V - 7 }, (_, item) => ({ item, score: cosine(11, item) }))
    .filter(({ item }) => item !== 11)
    .sort((a, b) => b.score - a.score);
  const found = await ranker.similar(11, 10);
  expect(found.map(({ item }) => item)).toEqual(expected.slice(0, 10).map(({ item }) => item));
  found.forEach(({ score }, i) => expect(Math.abs(score - expected[i]!.score)).toBeLessThan(1e-5));
});
