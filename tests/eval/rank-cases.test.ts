import { expect, test } from 'vitest';
import { MemorySource } from '../../src/data/memory-source.js';
import { evaluationCases } from '../../src/eval/cases.js';
import { rankCases } from '../../src/eval/rank-cases.js';
import { ItemRanker } from '../../src/eval/item-ranker.js';
import { Device } from '../../src/native/device.js';
import { Model } from '../../src/nn/model.js';
import { Tape } from '../../src/ops/tape.js';
import { resolveConfig } from '../../src/config/resolve.js';
import { shapeModel } from '../../src/jobs/shape-model.js';
import { Random } from '../../src/util/random.js';
import { readAllRows } from '../../src/ops/copy-rows.js';

/** Awkward on purpose: a prime catalogue, users from one event to far beyond the model's length, repeats. */
function awkwardSource(items: number): MemorySource {
  const random = new Random(7, 'awkward');
  const lengths = [1, 2, 3, 4, 5, 9, 10, 11, 60, ...Array.from({ length: 40 }, () => 2 + random.below(30))];
  const offsets = Int32Array.from([0, ...lengths]);
  for (let u = 1; u < offsets.length; u++) offsets[u]! += offsets[u - 1]!;
  const item = Int32Array.from({ length: offsets.at(-1)! }, () => random.below(items));
  return new MemorySource({ items, offsets, item });
}

function dot(a: Float32Array, b: Float32Array): number {
  return a.reduce((sum, x, i) => sum + x * b[i]!, 0);
}

test.each([
  ['history', true, 7],
  ['input', true, 127],
  ['none', false, 131],
  ['history', false, 1031],
] as const)('ranks equal brute force: %s excluded, normalised %s, %i items', async (exclude, normalizeItem, items) => {
  const source = awkwardSource(items);
  const config = resolveConfig({ model: { d: 12, maxLength: 10, blocks: 1 }, loss: { normalizeItem } });
  using device = Device.open({ threads: 2 });
  const model = new Model(device, shapeModel(config, source), 3);
  const listLength = 5;
  const found = await rankCases({ model, source, part: 'test', exclude, listLength });

  const table = await readAllRows(device, model.items.value);
  const row = (i: number) => table.subarray(12 * i, 12 * i + 12);
  const norm = (i: number) => (normalizeItem ? Math.max(1e-6, Math.sqrt(dot(row(i), row(i)))) : 1);
  let c = 0;
  for (const { batch, targets, excluded, excludedOffsets } of evaluationCases({
    source,
    part: 'test',
    maxLength: 10,
    exclude,
  })) {
    using tape = new Tape(device, { training: false });
    using tensors = model.upload(batch);
    const states = await device.read(model.encode(tape, tensors));
    for (let b = 0; b < targets.length; b++, c++) {
      const end = batch.offsets[b + 1]!;
      const state = states.subarray(12 * (end - 1), 12 * end);
      const left = new Set(excluded.subarray(excludedOffsets[b], excludedOffsets[b + 1]));
      const scores = Array.from({ length: items }, (_, i) => dot(state, row(i)) / norm(i));
      const target = targets[b]!;
      const rank = found.ranks[c]!;
      expect(found.targets[c]).toBe(target);
      // Scores that differ by rounding alone may stand in either order.
      const better = (margin: number) =>
        scores.filter((s, i) => !left.has(i) && i !== target && s > scores[target]! + margin);
      const [least, most] = left.has(target)
        ? [items + 1, items + 1]
        : [better(1e-6).length + 1, better(-1e-6).length + 1];
      expect(rank).toBeGreaterThanOrEqual(least);
      expect(rank).toBeLessThanOrEqual(most);
      const list = found.lists.subarray(c * listLength, (c + 1) * listLength).filter(i => i >= 0);
      expect(list.length).toBe(Math.min(listLength, items - left.size));
      const best = scores.filter((_, i) => !left.has(i)).sort((x, y) => y - x);
      list.forEach((i, place) => {
        expect(left.has(i)).toBe(false);
        expect(scores[i]).toBeCloseTo(best[place]!, 5);
      });
    }
  }
  expect(c).toBe(found.ranks.length);
});

test('what is excluded is the whole history, the input, or nothing', () => {
  const item = Int32Array.from({ length: 20 }, (_, i) => i);
  const source = new MemorySource({ items: 30, offsets: Int32Array.of(0, 20), item });
  const excludedBy = (exclude: 'history' | 'input' | 'none') =>
    [...evaluationCases({ source, part: 'test', maxLength: 5, exclude })].map(({ excluded }) => [...excluded])[0];
  expect(excludedBy('history')).toEqual([...item.subarray(0, 19)]);
  expect(excludedBy('input')).toEqual([14, 15, 16, 17, 18]);
  expect(excludedBy('none')).toEqual([]);
});

test('a share of the users is the same share each time', () => {
  const source = awkwardSource(31);
  const users = () => {
    const seen: number[] = [];
    for (const { batch } of evaluationCases({ source, part: 'validation', maxLength: 5, exclude: 'none', users: 12 })) {
      seen.push(...batch.users);
    }
    return seen;
  };
  expect(users()).toHaveLength(12);
  expect(users()).toEqual(users());
});

test('a recommendation is the top of the ranking, without the history and without items that have no name', async () => {
  const source = awkwardSource(41);
  const config = resolveConfig({ model: { d: 12, maxLength: 10, blocks: 1 } });
  using device = Device.open({ threads: 1 });
  const model = new Model(device, shapeModel(config, source), 3);
  const items = Int32Array.of(3, 1, 4, 1, 5);
  const history = { items, times: new Float64Array(5), actions: new Int32Array(5), at: 0 };
  const ranker = new ItemRanker(model, { named: 38 });
  const [ranked = [], all] = await ranker.rank([
    { history, k: 50, excluded: items },
    { history, k: 3, excluded: new Int32Array(0) },
  ]);
  expect(ranked.map(({ item }) => item).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 38 }, (_, i) => i).filter(i => !items.includes(i)),
  );
  for (let i = 1; i < ranked.length; i++) expect(ranked[i]!.score).toBeLessThanOrEqual(ranked[i - 1]!.score);
  expect(all).toHaveLength(3);
  // Scores are logits: a cosine divided by the temperature.
  for (const { score } of ranked) expect(Math.abs(score)).toBeLessThanOrEqual(20.001);
  expect(Math.max(...ranked.map(({ score }) => Math.abs(score)))).toBeGreaterThan(1);
});
