// Conditional logit: weights w that maximise the likelihood of the chosen alternatives under softmax(w . x + offset), minus a
// quadratic penalty on the distance from the start. The objective is concave, so Newton's method with step halving finds its
// maximum. Each case's terms are computed separately and added in the order of the cases, so the same cases give the same
// bits on any number of ranks.
//
// A alternatives of all cases, F features.

import type { Communicator } from '../../dist/comm/communicator.js';
import { joinColumns } from '../../dist/comm/gather-columns.js';

export interface Choices {
  /** [A * F] features by case; may have unused capacity at the end. */
  readonly x: Float32Array;
  /** [A] log of the number of items that an alternative represents. */
  readonly offset: Float32Array;
  /** Case c has alternatives starts[c] .. starts[c + 1] - 1; the first of them was chosen. */
  readonly starts: readonly number[];
}

export interface FitOptions {
  /** [F] starting point and centre of the penalty. */
  start: Float64Array;
  /** [F] features to fit; the others stay at their start. */
  free: readonly boolean[];
  /** Penalty weight: the penalty is half of it times the squared distance. */
  ridge: number;
  /** The ranks that share the cases, in rank order. */
  world: Communicator;
}

const MOST_STEPS = 50;
/** Convergence threshold in log-likelihood per case. */
const ENOUGH = 1e-7;

interface Slope {
  cases: number;
  value: number;
  gradient: Float64Array;
  curvature: Float64Array;
}

/** Collective. `parts`: the cases of this rank; all cases of the first part come before those of the second. */
export async function fitWeights(
  parts: readonly Choices[],
  { start, free, ridge, world }: FitOptions,
): Promise<Float64Array> {
  const F = start.length;
  let weights = Float64Array.from(start);
  const penalised = async (w: Float64Array): Promise<Slope> => {
    const slope = { cases: 0, value: 0, gradient: new Float64Array(F), curvature: new Float64Array(F * F) };
    for (const part of parts) addCases(slope, (await joinColumns(world, { shares: likelihoods(part, w) })).shares);
    for (let f = 0; f < F; f++) {
      const away = w[f]! - start[f]!;
      slope.value -= (ridge / 2) * away * away;
      slope.gradient[f]! -= ridge * away;
      slope.curvature[f * F + f]! += ridge;
    }
    return slope;
  };
  let at = await penalised(weights);
  for (let step = 0; step < MOST_STEPS; step++) {
    const direction = solve(at.curvature, at.gradient, free);
    let reach = 1;
    let next = at;
    let moved = weights;
    for (; reach > 1e-6; reach /= 2) {
      moved = weights.map((w, f) => w + reach * direction[f]!);
      next = await penalised(moved);
      if (next.value > at.value) break;
    }
    const gain = next.value - at.value;
    if (!(gain > 0)) return weights;
    [weights, at] = [moved, next];
    if (gain < ENOUGH * at.cases) return weights;
  }
  return weights;
}

/** Numbers of a case: log-likelihood, gradient, lower triangle of the curvature. */
function shareSize(F: number): number {
  return 1 + F + (F * (F + 1)) / 2;
}

/** For each case its log-likelihood, the gradient and the negative of the Hessian. */
function likelihoods({ x, offset, starts }: Choices, w: Float64Array): Float64Array {
  const F = w.length;
  const shares = new Float64Array((starts.length - 1) * shareSize(F));
  const mean = new Float64Array(F);
  const square = new Float64Array(F * F);
  let score = new Float64Array(64);
  let at = 0;
  for (let c = 0; c + 1 < starts.length; c++) {
    const [from, to] = [starts[c]!, starts[c + 1]!];
    if (to - from > score.length) score = new Float64Array(2 * (to - from));
    let most = Number.NEGATIVE_INFINITY;
    for (let a = from; a < to; a++) {
      let sum = offset[a]!;
      for (let f = 0; f < F; f++) sum += w[f]! * x[a * F + f]!;
      score[a - from] = sum;
      most = Math.max(most, sum);
    }
    let total = 0;
    mean.fill(0);
    square.fill(0);
    const chosen = score[0]!;
    for (let a = from; a < to; a++) {
      const p = Math.exp(score[a - from]! - most);
      total += p;
      for (let f = 0; f < F; f++) {
        const px = p * x[a * F + f]!;
        if (px === 0) continue;
        mean[f]! += px;
        for (let g = 0; g <= f; g++) square[f * F + g]! += px * x[a * F + g]!;
      }
    }
    shares[at++] = chosen - most - Math.log(total);
    for (let f = 0; f < F; f++) shares[at++] = x[from * F + f]! - mean[f]! / total;
    for (let f = 0; f < F; f++) {
      for (let g = 0; g <= f; g++) {
        shares[at++] = square[f * F + g]! / total - (mean[f]! * mean[g]!) / (total * total);
      }
    }
  }
  return shares;
}

function addCases(slope: Slope, shares: Float64Array): void {
  const { gradient, curvature } = slope;
  const F = gradient.length;
  for (let at = 0; at < shares.length; slope.cases++) {
    slope.value += shares[at++]!;
    for (let f = 0; f < F; f++) gradient[f]! += shares[at++]!;
    for (let f = 0; f < F; f++) {
      for (let g = 0; g <= f; g++) {
        const covariance = shares[at++]!;
        curvature[f * F + g]! += covariance;
        if (g < f) curvature[g * F + f]! += covariance;
      }
    }
  }
}

/** Solves curvature . d = gradient for the free features by Cholesky; the ridge keeps the matrix positive definite. */
function solve(curvature: Float64Array, gradient: Float64Array, free: readonly boolean[]): Float64Array {
  const F = gradient.length;
  const used = Array.from({ length: F }, (_, f) => f).filter(f => free[f]);
  const n = used.length;
  const l = new Float64Array(n * n);
  const y = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = curvature[used[i]! * F + used[j]!]!;
      for (let k = 0; k < j; k++) sum -= l[i * n + k]! * l[j * n + k]!;
      l[i * n + j] = i === j ? Math.sqrt(Math.max(sum, 1e-12)) : sum / l[j * n + j]!;
    }
    let sum = gradient[used[i]!]!;
    for (let k = 0; k < i; k++) sum -= l[i * n + k]! * y[k]!;
    y[i] = sum / l[i * n + i]!;
  }
  const direction = new Float64Array(F);
  for (let i = n - 1; i >= 0; i--) {
    let sum = y[i]!;
    for (let k = i + 1; k < n; k++) sum -= l[k * n + i]! * direction[used[k]!]!;
    direction[used[i]!] = sum / l[i * n + i]!;
  }
  return direction;
}
