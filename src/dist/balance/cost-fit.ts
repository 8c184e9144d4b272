// The cost model fitted while training: recursive least squares on measured step times, with slow forgetting.
//
// One observation is a rank's step: N1 = sum of n, N2 = sum of n^2 over its sequences, and its seconds.
//   seconds = x . theta,  x = (a0 N1, b0 N2) / scale
// in units of the initial model (the FLOP count), so both entries of theta are of similar size and the first observation can
// set them. All ranks feed the same observations in the same order and have the same fit; the state is plain JSON, and a
// fit restored from it continues bit for bit.

import { z } from 'zod';
import type { CostModel } from './cost.js';

/** Weight of an observation after k further ones: FORGETTING^k. */
const FORGETTING = 0.998;
/** Initial variance of both entries of theta: how freely the ratio b / a may move from its initial value. */
const LOOSENESS = 100;
/** Residuals are clamped to this share of the prediction: outliers are pauses of the machine. */
const LARGEST_SURPRISE = 0.5;

export interface Observation {
  tokens: number;
  squares: number;
  seconds: number;
}

/** As stored in checkpoints. */
export const COST_FIT_STATE = z.strictObject({
  start: z.strictObject({ a: z.number(), b: z.number() }),
  /** 0 before the first observation. */
  scale: z.number(),
  theta: z.tuple([z.number(), z.number()]),
  /** Upper triangle of the symmetric 2 x 2 inverse information matrix. */
  spread: z.tuple([z.number(), z.number(), z.number()]),
  observations: z.int(),
});
export type CostFitState = z.infer<typeof COST_FIT_STATE>;

export class CostFit {
  #state: CostFitState;

  constructor(start: CostModel) {
    this.#state = { start, scale: 0, theta: [0, 0], spread: [LOOSENESS, 0, LOOSENESS], observations: 0 };
  }

  static restore(state: CostFitState): CostFit {
    const fit = new CostFit(state.start);
    fit.#state = structuredClone(state);
    return fit;
  }

  get state(): CostFitState {
    return structuredClone(this.#state);
  }

  /** Seconds per token and per token pair; the initial model until the first observation. */
  get model(): CostModel {
    const { start, scale, theta } = this.#state;
    if (scale === 0) return { ...start };
    return { a: (start.a * Math.max(0, theta[0])) / scale, b: (start.b * Math.max(0, theta[1])) / scale };
  }

  observe({ tokens, squares, seconds }: Observation): void {
    const state = this.#state;
    if (!(tokens > 0 && squares > 0 && seconds > 0 && Number.isFinite(tokens + squares + seconds))) return;
    const cost1 = state.start.a * tokens;
    const cost2 = state.start.b * squares;
    if (state.scale === 0) {
      state.scale = cost1 + cost2;
      state.theta = [seconds, seconds];
    }
    const x1 = cost1 / state.scale;
    const x2 = cost2 / state.scale;
    const [p11, p12, p22] = state.spread;
    const g1 = p11 * x1 + p12 * x2;
    const g2 = p12 * x1 + p22 * x2;
    // While steps carry no information about the ratio, forgetting would let its variance grow without bound.
    const forgetting = p11 + p22 < 2 * LOOSENESS ? FORGETTING : 1;
    const weight = forgetting + x1 * g1 + x2 * g2;
    const expected = x1 * state.theta[0] + x2 * state.theta[1];
    const limit = LARGEST_SURPRISE * Math.abs(expected);
    const surprise = Math.max(-limit, Math.min(limit, seconds - expected));
    state.theta = [state.theta[0] + (g1 / weight) * surprise, state.theta[1] + (g2 / weight) * surprise];
    state.spread = [
      (p11 - (g1 * g1) / weight) / forgetting,
      (p12 - (g1 * g2) / weight) / forgetting,
      (p22 - (g2 * g2) / weight) / forgetting,
    ];
    state.observations++;
  }
}
