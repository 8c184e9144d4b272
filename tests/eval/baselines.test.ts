import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemorySource } from '../../src/data/memory-source.js';
import { MarkovBaseline, PopularityBaseline, RecencyBaseline } from '../../src/eval/baselines.js';
import { byCount, countItems } from '../../src/eval/known-events.js';
import { Successors } from '../../src/eval/successors.js';

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

/** What decides between equal scores: the same order for every ranker. */
const TIES = byCount(new Int32Array(ITEMS));

/** Scores the whole catalogue, sorts it, and looks for the target. */
function sortedRank(score: (item: number) => number[], target: number, excluded: Set<number>): number {
  const order = Array.from({ length: ITEMS }, (_, i) => i)
    .filter(item => !excluded.has(item))
    .sort((a, b) => {
      const [x, y] = [score(a), score(b)];
      for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) return y[i]! - x[i]!;
      return TIES.indexOf(a) - TIES.indexOf(b);
    });
  return excluded.has(target) ? ITEMS + 1 : order.indexOf(target) + 1;
}

test('baselines rank as a sort of the whole catalogue does', () => {
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
      const markov = new MarkovBaseline(popularity, new Successors(source, 'test', { place: popularity.place }));
      const recency = new RecencyBaseline(popularity);
      for (const events of users) {
        const history = Int32Array.from(events.slice(0, -1));
        const target = events.at(-1)!;
        const excluded = new Set(filter ? history : []);
        const last = history.at(-1)!;
        expect(popularity.rank(history, target, excluded)).toBe(sortedRank(item => [count(item)], target, excluded));
        expect(markov.rank(history, target, excluded)).toBe(
          sortedRank(item => [follows(last, item), count(item)], target, excluded),
        );
        expect(recency.rank(history, target, excluded)).toBe(
          sortedRank(item => [history.lastIndexOf(item), count(item)], target, excluded),
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

test('equal counts do not favour what occurs in the held-out events', () => {
  // Ids are numbered by the counts of the whole log, so targets have low ids. In an order by id their mean rank would be 25.
  const popularity = new PopularityBaseline(new Int32Array(100));
  const ranks = Array.from({ length: 50 }, (_, target) => popularity.rank(new Int32Array(0), target, new Set()));
  const mean = ranks.reduce((sum, rank) => sum + rank, 0) / ranks.length;
  expect(mean).toBeGreaterThan(40);
  expect(mean).toBeLessThan(61);
});

test('successors at a distance, and on a share of the users when there are too many pairs', () => {
  const source = sourceOf([
    [0, 1, 2, 3, 8],
    [4, 5, 6, 7, 8],
  ]);
  const place = Int32Array.from({ length: ITEMS }, (_, i) => i);
  const of = (item: number, options: object) => {
    const successors = new Successors(source, 'test', { place, ...options });
    return [...successors.items.subarray(...successors.range(item))];
  };
  expect(of(0, { distances: [2, 3] })).toEqual([2, 3]);
  expect(of(4, { distances: [2, 3] })).toEqual([6, 7]);
  expect(of(0, { distances: [2, 3], mostPairs: 4 })).toEqual([2, 3]);
  expect(of(4, { distances: [2, 3], mostPairs: 4 })).toEqual([]);
});
