// From ranks to figures. A case is one held-out event; its rank is 1-based, in the whole catalogue less what is
// excluded. A target that is itself excluded can never be found and counts as a miss at every k.
//
//   HR@k    share of cases with rank <= k          NDCG@k  mean of 1 / log2(rank + 1) where rank <= k, else 0
//   MRR     mean of 1 / rank (0 for an excluded target)
//   recall@k  mean over users of the share of the user's cases with rank <= k; equal to HR@k when each has one
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
  /** [C] whose case it is. */
  users: Int32Array;
  /** Size of the catalogue. */
  items: number;
}

/** Names such as `hr@10`, `ndcg@10`, `recall@10`, `mrr`, in the order in which they are printed. */
export type Metrics = Record<string, Estimate>;

const Z_95 = 1.959964;

/** Score of one case under one metric; k is ignored by mrr. */
function score(metric: string, rank: number, k: number, items: number): number {
  if (metric === 'mrr') return rank > items ? 0 : 1 / rank;
  if (rank > k || rank > items) return 0;
  return metric === 'ndcg' ? 1 / Math.log2(rank + 1) : 1;
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

/** Mean over users of each user's own mean. */
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

export function computeMetrics(cases: RankedCases, cutoffs: readonly number[]): Metrics {
  const { index, count } = numberUsers(cases.users);
  const counts = new Float64Array(count);
  for (const user of index) counts[user]!++;
  const perUser = (metric: string, k: number): Float64Array => {
    const sums = new Float64Array(count);
    cases.ranks.forEach((rank, c) => {
      sums[index[c]!]! += score(metric, rank, k, cases.items);
    });
    return sums;
  };
  const metrics: Metrics = {};
  for (const k of cutoffs) metrics[`hr@${k}`] = overCases(perUser('hr', k), counts);
  for (const k of cutoffs) metrics[`ndcg@${k}`] = overCases(perUser('ndcg', k), counts);
  for (const k of cutoffs) metrics[`recall@${k}`] = overUsers(perUser('hr', k), counts);
  metrics['mrr'] = overCases(perUser('mrr', 0), counts);
  return metrics;
}

/** One metric by its config name (`hr@10`, `ndcg@10`, `mrr`), for choosing the best epoch. */
export function metricOf(cases: RankedCases, name: string): number {
  const [metric = '', k = '0'] = name.split('@');
  let sum = 0;
  for (const rank of cases.ranks) sum += score(metric, rank, Number(k), cases.items);
  return cases.ranks.length === 0 ? 0 : sum / cases.ranks.length;
}
