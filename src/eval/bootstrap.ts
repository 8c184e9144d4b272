// Distribution-free intervals and significance: users are resampled with replacement (bootstrap), or the signs of their
// differences are flipped at random (randomisation test). Users rather than cases, since the cases of one user are dependent.
// The seed is fixed: the same cases give the same figures.

import { Random } from '../util/random.js';
import type { UserScores } from './metrics.js';

export interface Interval {
  value: number;
  /** Bounds of the 95 % percentile interval. */
  low: number;
  high: number;
}

const MOST_RESAMPLES = 1000;
const FEWEST_RESAMPLES = 200;
/** Total user draws of one bootstrap: about a second. */
const DRAWS = 5e7;
const SEED = 17;

/** Many users need fewer resamples: their interval is narrow and nearly normal. */
export function resamplesFor(users: number): number {
  return Math.min(MOST_RESAMPLES, Math.max(FEWEST_RESAMPLES, Math.floor(DRAWS / Math.max(1, users))));
}

/** The mean over cases of each metric, with its interval. All metrics see the same draws. */
export function bootstrap({ counts, sums }: UserScores): Map<string, Interval> {
  const users = counts.length;
  const resamples = resamplesFor(users);
  const names = [...sums.keys()];
  const means = names.map(() => new Float64Array(resamples));
  const times = new Int32Array(users);
  const random = new Random(SEED, 'bootstrap');
  for (let r = 0; r < resamples; r++) {
    times.fill(0);
    random.stream(r);
    for (let draw = 0; draw < users; draw++) times[random.below(users)]!++;
    const cases = dot(times, counts);
    names.forEach((name, m) => (means[m]![r] = dot(times, sums.get(name)!) / cases));
  }
  const cases = counts.reduce((sum, count) => sum + count, 0);
  return new Map(
    names.map((name, m) => {
      const value = cases === 0 ? 0 : sums.get(name)!.reduce((sum, x) => sum + x, 0) / cases;
      const sorted = means[m]!.sort();
      return [name, { value, low: quantile(sorted, 0.025), high: quantile(sorted, 0.975) }];
    }),
  );
}

/** Two-sided p-value for equal means, by flipping the signs of the users' differences at random. */
export function signFlipTest(differences: Float64Array): number {
  const changed = differences.filter(difference => difference !== 0);
  const observed = Math.abs(changed.reduce((sum, x) => sum + x, 0));
  const flips = 10 * resamplesFor(changed.length);
  const random = new Random(SEED, 'sign flips');
  // Sums in another order differ in the last bits, but ties must count as ties.
  const reached = observed * (1 - 1e-12);
  let extreme = 0;
  for (let f = 0; f < flips; f++) {
    random.stream(f);
    let [sum, bits] = [0, 0];
    for (let i = 0; i < changed.length; i++) {
      if (i % 32 === 0) bits = random.uint32();
      sum += bits & 1 ? changed[i]! : -changed[i]!;
      bits >>>= 1;
    }
    if (Math.abs(sum) >= reached) extreme++;
  }
  return (extreme + 1) / (flips + 1);
}

function dot(times: Int32Array, values: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < times.length; i++) sum += times[i]! * values[i]!;
  return sum;
}

/** Quantile of ascending values, by linear interpolation. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const below = sorted[Math.floor(at)] ?? 0;
  const above = sorted[Math.ceil(at)] ?? 0;
  return below + (above - below) * (at - Math.floor(at));
}
