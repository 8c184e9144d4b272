// Paired comparison of two rankers on the same cases: the difference and its significance. Each user is compared with itself, so
// differences between users do not affect the comparison.

import { bootstrap, type Interval, resamplesFor, signFlipTest } from './bootstrap.js';
import { type RankedCases, userScores } from './metrics.js';

export interface PairedMetric {
  /** Mean over cases, of each ranker. */
  a: number;
  b: number;
  /** b - a with its 95 % interval. */
  difference: Interval;
  /** Two-sided p-value of "no difference". */
  p: number;
  /** The interval excludes 0, and p is below 0.05. */
  significant: boolean;
}

export interface PairedReport {
  users: number;
  cases: number;
  /** Cases that b ranks higher, lower and the same. */
  better: number;
  worse: number;
  equal: number;
  resamples: number;
  metrics: Record<string, PairedMetric>;
}

export const PAIRED_METRICS = ['hr@1', 'hr@10', 'ndcg@10', 'mrr'];

/** `a` and `b` must rank the same cases in the same order. */
export function comparePaired(a: RankedCases, b: RankedCases, names: readonly string[] = PAIRED_METRICS): PairedReport {
  if (a.items !== b.items || a.users.length !== b.users.length || a.users.some((user, c) => user !== b.users[c])) {
    throw new Error('paired rankers must rank the same cases in the same order');
  }
  const [ofA, ofB] = [userScores(a, names), userScores(b, names)];
  const differences = new Map(
    names.map(name => [name, ofB.sums.get(name)!.map((sum, user) => sum - ofA.sums.get(name)![user]!)]),
  );
  const intervals = bootstrap({ counts: ofA.counts, sums: differences });
  const cases = a.ranks.length;
  const mean = (sums: Float64Array): number => sums.reduce((sum, x) => sum + x, 0) / Math.max(1, cases);
  const metrics = names.map(name => {
    const difference = intervals.get(name)!;
    const p = signFlipTest(differences.get(name)!);
    const significant = p < 0.05 && difference.low * difference.high > 0;
    return [name, { a: mean(ofA.sums.get(name)!), b: mean(ofB.sums.get(name)!), difference, p, significant }] as const;
  });
  const count = (wanted: number): number =>
    a.ranks.reduce((sum, rank, c) => sum + (Math.sign(rank - b.ranks[c]!) === wanted ? 1 : 0), 0);
  return {
    users: ofA.counts.length,
    cases,
    better: count(1),
    worse: count(-1),
    equal: count(0),
    resamples: resamplesFor(ofA.counts.length),
    metrics: Object.fromEntries(metrics),
  };
}
