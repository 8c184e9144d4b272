import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { listQuality } from '../../src/eval/list-quality.js';
import { computeMetrics, metricOf, type RankedCases } from '../../src/eval/metrics.js';

const caseList = fc
  .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 60 }))
  .chain(([items, count]) =>
    fc.record({
      items: fc.constant(items),
      ranks: fc.array(fc.integer({ min: 1, max: items + 1 }), { minLength: count, maxLength: count }),
      users: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: count, maxLength: count }),
    }),
  )
  .map(
    ({ items, ranks, users }): RankedCases => ({ items, ranks: Int32Array.from(ranks), users: Int32Array.from(users) }),
  );

/** Builds the ranked list of every case and looks for the target in it: no formula shared with the code under test. */
function bruteForce(cases: RankedCases, k: number): { hr: number; ndcg: number; mrr: number } {
  const total = { hr: 0, ndcg: 0, mrr: 0 };
  for (const rank of cases.ranks) {
    const list = Array.from({ length: cases.items }, (_, i) => (i + 1 === rank ? 'target' : 'other'));
    const at = list.indexOf('target');
    if (at < 0) continue;
    total.mrr += 1 / (at + 1);
    if (!list.slice(0, k).includes('target')) continue;
    total.hr += 1;
    total.ndcg += Math.log(2) / Math.log(at + 2);
  }
  const n = cases.ranks.length;
  return { hr: total.hr / n, ndcg: total.ndcg / n, mrr: total.mrr / n };
}

test('metrics equal brute force, also where k is the catalogue, beyond it, or one', () => {
  fc.assert(
    fc.property(caseList, fc.integer({ min: 1, max: 45 }), (cases, k) => {
      const cutoffs = [1, k, cases.items];
      const metrics = computeMetrics(cases, cutoffs);
      for (const cutoff of cutoffs) {
        const truth = bruteForce(cases, cutoff);
        expect(metrics[`hr@${cutoff}`]!.value).toBeCloseTo(truth.hr, 12);
        expect(metrics[`ndcg@${cutoff}`]!.value).toBeCloseTo(truth.ndcg, 12);
        expect(metrics['mrr']!.value).toBeCloseTo(truth.mrr, 12);
        expect(metricOf(cases, `ndcg@${cutoff}`)).toBeCloseTo(truth.ndcg, 12);
      }
      expect(metricOf(cases, 'mrr')).toBeCloseTo(metrics['mrr']!.value, 12);
    }),
  );
});

test('rank k counts at k and not at k - 1: ranks are 1-based', () => {
  const cases = { ranks: Int32Array.of(10), users: Int32Array.of(0), items: 100 };
  expect(metricOf(cases, 'hr@10')).toBe(1);
  expect(metricOf(cases, 'hr@9')).toBe(0);
});

test('an excluded target is a miss even when k exceeds the catalogue', () => {
  const cases = { ranks: Int32Array.of(6), users: Int32Array.of(0), items: 5 };
  expect(metricOf(cases, 'hr@200')).toBe(0);
  expect(metricOf(cases, 'mrr')).toBe(0);
});

test('recall is a mean over users, HR over cases', () => {
  const cases = { ranks: Int32Array.of(1, 1, 1, 9), users: Int32Array.of(0, 0, 0, 1), items: 9 };
  const metrics = computeMetrics(cases, [5]);
  expect(metrics['hr@5']!.value).toBe(0.75);
  expect(metrics['recall@5']!.value).toBe(0.5);
});

test('the interval has the width of a binomial one, and knows that cases of a user go together', () => {
  const n = 2000;
  const ranks = Int32Array.from({ length: n }, (_, i) => (i % 4 === 0 ? 1 : 50));
  const apart = computeMetrics({ ranks, users: Int32Array.from(ranks.keys()), items: 100 }, [10])['hr@10']!;
  expect(apart.margin).toBeCloseTo(1.96 * Math.sqrt((0.25 * 0.75) / n), 4);
  const copied = { ranks: Int32Array.from({ length: n }, (_, i) => ranks[4 * (i >> 2)]!), items: 100 };
  const sameUser = Int32Array.from({ length: n }, (_, i) => i >> 2);
  const shuffledRanks = Int32Array.from({ length: n }, (_, i) => ((i >> 2) % 4 === 0 ? 1 : 50));
  const together = computeMetrics({ ...copied, ranks: shuffledRanks, users: sameUser }, [10])['hr@10']!;
  expect(together.margin).toBeCloseTo(2 * apart.margin, 3);
});

test('coverage and popularity of lists', () => {
  const popularity = Int32Array.from({ length: 20 }, (_, i) => 100 - i);
  const quality = listQuality({
    k: 2,
    lists: Int32Array.of(0, 1, 0, 5, 9, -1),
    targets: Int32Array.of(0, 7, 8, 9),
    popularity,
  });
  expect(quality).toEqual({ k: 2, coverage: 4 / 20, popularShare: 3 / 5, popularShareOfTargets: 1 / 4 });
});
