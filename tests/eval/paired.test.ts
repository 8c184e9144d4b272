import * as fc from 'fast-check';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bootstrap, signFlipTest } from '../../src/eval/bootstrap.js';
import { userScores, type RankedCases } from '../../src/eval/metrics.js';
import { comparePaired } from '../../src/eval/paired.js';
import { readRanks, writeRanks } from '../../src/eval/rank-file.js';
import { segmentCases } from '../../src/eval/segments.js';
import { Random } from '../../src/util/random.js';

function cases(ranks: readonly number[], users = ranks.map((_, c) => c), items = 100): RankedCases {
  return { items, ranks: Int32Array.from(ranks), users: Int32Array.from(users) };
}

function randomRanks(seed: number, count: number, most: number): number[] {
  const random = new Random(seed, 'test ranks');
  return Array.from({ length: count }, () => 1 + random.below(most));
}

test('a ranker differs from itself by nothing, with certainty', () => {
  const same = cases(randomRanks(1, 200, 100));
  const { metrics, equal, better, worse } = comparePaired(same, same);
  expect([better, worse, equal]).toEqual([0, 0, 200]);
  for (const { a, b, difference, p, significant } of Object.values(metrics)) {
    expect(a).toBe(b);
    expect(difference).toEqual({ value: 0, low: 0, high: 0 });
    expect([p, significant]).toEqual([1, false]);
  }
});

test('a real difference is found, chance is not, and both directions agree', () => {
  const a = cases(randomRanks(1, 400, 100));
  const chance = cases(randomRanks(2, 400, 100));
  const better = cases(Array.from(a.ranks, rank => Math.ceil(rank / 3)));
  expect(comparePaired(a, chance).metrics['ndcg@10']!.significant).toBe(false);
  const forth = comparePaired(a, better).metrics['ndcg@10']!;
  const back = comparePaired(better, a).metrics['ndcg@10']!;
  expect(forth.significant).toBe(true);
  expect(forth.p).toBeLessThan(0.001);
  expect(back.difference.value).toBeCloseTo(-forth.difference.value, 12);
  expect(back.p).toBe(forth.p);
});

test('the sign-flip test is exact where all flips can be counted', () => {
  // 5 equal differences: |sum| is 5 in 2 of 32 flips.
  expect(signFlipTest(Float64Array.of(1, 1, 1, 1, 1))).toBeCloseTo(2 / 32, 1);
  expect(signFlipTest(Float64Array.of(0.1, 0.2, 0.3))).toBeCloseTo(2 / 8, 1);
  expect(signFlipTest(new Float64Array(3))).toBe(1);
});

test('bootstrap intervals cover the mean of the population about as often as they say', () => {
  let covered = 0;
  const rounds = 120;
  for (let round = 0; round < rounds; round++) {
    const ranks = randomRanks(100 + round, 150, 40); // hr@10 of the population: 0.25
    const { low, high } = bootstrap(userScores(cases(ranks), ['hr@10'])).get('hr@10')!;
    if (low <= 0.25 && high >= 0.25) covered++;
  }
  expect(covered / rounds).toBeGreaterThan(0.88);
  expect(covered / rounds).toBeLessThan(1);
});

test('cases of one user move together: intervals are over users', () => {
  const ranks = randomRanks(3, 40, 20);
  const once = bootstrap(userScores(cases(ranks), ['hr@10'])).get('hr@10')!;
  const tenTimes = cases(
    ranks.flatMap(rank => Array<number>(10).fill(rank)),
    ranks.flatMap((_, user) => Array<number>(10).fill(user)),
  );
  expect(bootstrap(userScores(tenTimes, ['hr@10'])).get('hr@10')).toEqual(once);
});

test('rankers of different cases are refused', () => {
  expect(() => comparePaired(cases([1, 2]), cases([1]))).toThrow('same cases');
  expect(() => comparePaired(cases([1, 2]), cases([1, 2], [0, 2]))).toThrow('same cases');
});

test('segments part the cases: counts add up and figures are those of the members', () => {
  const ranks = [1, 20, 3, 4];
  const segments = segmentCases({
    rankers: { model: cases(ranks), popularity: cases([2, 2, 200, 2]) },
    facts: { history: Int32Array.of(3, 12, 12, 2000), repeated: Uint8Array.of(1, 0, 0, 1), self: new Uint8Array(4) },
    targets: Int32Array.of(0, 1, 2, 99),
    counts: Int32Array.from({ length: 100 }, (_, item) => (item === 99 ? 0 : 100 - item)),
  });
  const of = (by: string, name: string) => segments.find(segment => segment.by === by && segment.name === name)!;
  for (const by of ['history length', 'target popularity', 'target']) {
    expect(segments.filter(segment => segment.by === by).reduce((sum, { cases: n }) => sum + n, 0)).toBe(4);
  }
  expect(of('history length', '10 to 19 events')).toMatchObject({ cases: 2, model: { 'hr@10': { value: 0.5 } } });
  expect(of('history length', '1000 or more events').cases).toBe(1);
  expect(of('target popularity', 'most popular 1 % of items').model['mrr']!.value).toBe(1);
  expect(of('target popularity', 'next 9 %').others['popularity']!['hr@10']).toBe(0.5);
  expect(of('target popularity', 'no training event').cases).toBe(1);
  expect(of('target', 'repeated').model['mrr']!.value).toBeCloseTo((1 + 1 / 4) / 2, 12);
});

test('saved ranks come back as they were', () => {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-ranks-'));
  try {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 101 })), ranks => {
        const saved = { ...cases(ranks), digest: 'd', fingerprint: 'f', exclude: 'history' as const, targets: 1 };
        writeRanks(join(folder, 'ranks.safetensors'), saved);
        expect(readRanks(join(folder, 'ranks.safetensors'))).toEqual(saved);
      }),
      { numRuns: 20 },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
