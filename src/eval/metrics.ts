// Computes metrics from ranks. A case is one held-out event; its rank is 1-based, in the whole catalogue without exclusions. An
// excluded target counts as a miss at every k.
//
//   HR@k    share of cases with rank <= k          NDCG@k  mean of 1 / log2(rank + 1) where rank <= k, else 0
//   MRR     mean of 1 / rank (0 for an excluded target)
//   recall@k  mean over users of the share of the user's cases with rank <= k; equal to HR@k if each has one
//
// Intervals are 95 % over users: cases of one user are not independent, users are.

export interface Estimate {
  value: number;
  /** Half width of the 95 % interval: value ± margin. */
  margin: number;
}

export interface RankedCases {
  /** [C] 1-based rank of the target, or more than `items` when the target was excluded. */
  ranks: Int32Array;
  /** [C] user of each case. */
  users: Int32Array;
  /** Size of the catalogue. */
  items: number;
}

/** Names such as `hr@10`, `ndcg@10`, `recall@10`, `mrr`, in the order in which they are printed. */
export type Metrics = Record<string, Estimate>;

const Z_95 = 1.959964;

/** Score of one case under a metric such as `hr@10`, `ndcg@10` or `mrr`. */
function scorer(name: string, items: number): (rank: number) => number {
  const [metric = '', k = '0'] = name.split('@');
  const last = Math.min(Number(k), items);
  if (metric === 'mrr') return rank => (rank > items ? 0 : 1 / rank);
  if (metric === 'ndcg') return rank => (rank > last ? 0 : 1 / Math.log2(rank + 1));
  return rank => (rank > last ? 0 : 1);
}

/** Mean over cases with its interval over users (ratio estimator: users may have different numbers of cases). */
function overCases(sums: Float64Array, counts: Float64Array): Estimate {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return { value: 0, margin: 0 };
  const value = sums.reduce((sum, x) => sum + x, 0) / total;
  const present = counts.reduce((n, count) => n + (count > 0 ? 1 : 0), 0);
  if (present < 2) return { value, margin: Number.POSITIVE_INFINITY };
  let squares = 0;
  for (let u = 0; u < sums.length; u++) squares += (sums[u]! - value * counts[u]!) ** 2;
  return { value, margin: (Z_95 * Math.sqrt((squares * present) / (present - 1))) / total };
}

/** Mean over users of each user's mean. */
function overUsers(sums: Float64Array, counts: Float64Array): Estimate {
  const means: number[] = [];
  for (let u = 0; u < sums.length; u++) if (counts[u]! > 0) means.push(sums[u]! / counts[u]!);
  return overCases(Float64Array.from(means), new Float64Array(means.length).fill(1));
}

/** Users numbered 0.. in order of appearance, for sums per user. */
function numberUsers(users: Int32Array): { index: Int32Array; count: number } {
  const seen = new Map<number, number>();
  const index = users.map(user => {
    const known = seen.get(user) ?? seen.size;
    seen.set(user, known);
    return known;
  });
  return { index, count: seen.size };
}

/** Scores summed over the cases of each user; users in order of appearance. */
export interface UserScores {
  /** Cases of each user. */
  counts: Float64Array;
  /** By metric. */
  sums: ReadonlyMap<string, Float64Array>;
}

export function userScores(cases: RankedCases, names: readonly string[]): UserScores {
  const { index, count } = numberUsers(cases.users);
  const counts = new Float64Array(count);
  for (const user of index) counts[user]!++;
  const sums = names.map(name => {
    const score = scorer(name, cases.items);
    const ofUser = new Float64Array(count);
    cases.ranks.forEach((rank, c) => {
      ofUser[index[c]!]! += score(rank);
    });
    return [name, ofUser] as const;
  });
  return { counts, sums: new Map(sums) };
}

export function computeMetrics(cases: RankedCases, cutoffs: readonly number[]): Metrics {
  const names = [...cutoffs.map(k => `hr@${k}`), ...cutoffs.map(k => `ndcg@${k}`), 'mrr'];
  const { counts, sums } = userScores(cases, names);
  const metrics: Metrics = {};
  for (const name of names.slice(0, -1)) metrics[name] = overCases(sums.get(name)!, counts);
  for (const k of cutoffs) metrics[`recall@${k}`] = overUsers(sums.get(`hr@${k}`)!, counts);
  metrics['mrr'] = overCases(sums.get('mrr')!, counts);
  return metrics;
}

/** One metric by its config name (`hr@10`, `ndcg@10`, `mrr`), for choosing the best epoch. */
export function metricOf(cases: RankedCases, name: string): number {
  const score = scorer(name, cases.items);
  const sum = cases.ranks.reduce((total, rank) => total + score(rank), 0);
  return cases.ranks.length === 0 ? 0 : sum / cases.ranks.length;
}
