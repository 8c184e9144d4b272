import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemorySource } from '../../src/data/memory-source.js';
import { countItems, MarkovBaseline, PopularityBaseline } from '../../src/eval/baselines.js';

const ITEMS = 9;
const log = fc.array(fc.array(fc.integer({ min: 0, max: ITEMS - 1 }), { minLength: 3, maxLength: 12 }), {
  minLength: 1,
  maxLength: 8,
});

function sourceOf(users: number[][]): MemorySource {
  const offsets = Int32Array.from([0, ...users.map(events => events.length)]);
  for (let u = 1; u < offsets.length; u++) offsets[u]! += offsets[u - 1]!;
  return new MemorySource({ items: ITEMS, offsets, item: Int32Array.from(users.flat()) });
}

/** Scores the whole catalogue, sorts it, and looks for the target. */
function sortedRank(score: (item: number) => number[], target: number, excluded: Set<number>): number {
  const order = Array.from({ length: ITEMS }, (_, i) => i)
    .filter(item => !excluded.has(item))
    .sort((a, b) => {
      const [x, y] = [score(a), score(b)];
      for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return y[i]! - x[i]!;
      return a - b;
    });
  return excluded.has(target) ? ITEMS + 1 : order.indexOf(target) + 1;
}

test('both baselines rank as a sort of the whole catalogue does', () => {
  fc.assert(
    fc.property(log, fc.boolean(), (users, filter) => {
      const source = sourceOf(users);
      const known = users.map(events => events.slice(0, -1));
      const count = (item: number) => known.flat().filter(x => x === item).length;
      const follows = (last: number, item: number) =>
        known.reduce(
          (sum, events) => sum + events.filter((x, i) => i > 0 && x === item && events[i - 1] === last).length,
          0,
        );
      const popularity = new PopularityBaseline(countItems(source, 'test'));
      const markov = new MarkovBaseline(source, 'test');
      for (const events of users) {
        const history = Int32Array.from(events.slice(0, -1));
        const target = events.at(-1)!;
        const excluded = new Set(filter ? history : []);
        const last = history.at(-1)!;
        expect(popularity.rank(history, target, excluded)).toBe(sortedRank(item => [count(item)], target, excluded));
        expect(markov.rank(history, target, excluded)).toBe(
          sortedRank(item => [follows(last, item), count(item)], target, excluded),
        );
      }
    }),
  );
});

test('validation learns from train alone, test from train and validation', () => {
  const source = sourceOf([[0, 1, 2, 3]]);
  expect([...countItems(source, 'validation')]).toEqual([1, 1, 0, 0, 0, 0, 0, 0, 0]);
  expect([...countItems(source, 'test')]).toEqual([1, 1, 1, 0, 0, 0, 0, 0, 0]);
});
