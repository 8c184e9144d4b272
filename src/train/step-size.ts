// How much a step computes, for its events and for the fitted cost model.

import { type Windows, windowTokens } from '../data/batch/windows.js';
import { lanesOf } from './lane-tree.js';
import type { StepPlan } from './step-plan.js';

export interface StepSize {
  tokens: number;
  /** Sum of the squared lengths. */
  squares: number;
  flops: number;
  /** As the TurboGR paper counts them; absent for models it does not cover. */
  paperFlops?: number;
}

/** FLOPs of a sequence of n events: useful work, and as the paper counts. */
export interface FlopCounts {
  useful: (n: number) => number;
  paper?: ((n: number) => number) | undefined;
}

export function stepSize({ lanes, tokens }: StepPlan, windows: Windows, { useful, paper }: FlopCounts): StepSize {
  const size: StepSize = { tokens, squares: 0, flops: 0, ...(paper && { paperFlops: 0 }) };
  for (const ids of lanes) {
    for (const id of ids) {
      const length = windowTokens(windows, id);
      size.squares += length * length;
      size.flops += useful(length);
      if (paper) size.paperFlops! += paper(length);
    }
  }
  return size;
}

/** Tokens of each rank's lanes. */
export function rankTokens({ laneTokens }: StepPlan, ranks: number): number[] {
  return Array.from({ length: ranks }, (_, rank) => {
    const { from, to } = lanesOf(laneTokens.length, rank, ranks);
    return laneTokens.slice(from, to).reduce((sum, tokens) => sum + tokens, 0);
  });
}
