// How much a step computes, for its events and for the fit of what steps cost.

import { type Windows, windowTokens } from '../data/batch/windows.js';
import type { ModelDefinition } from '../nn/definition.js';
import type { StepPlan } from './step-plan.js';

export interface StepSize {
  tokens: number;
  /** Sum of the squared lengths. */
  squares: number;
  flops: number;
}

export function stepSize({ lanes, tokens }: StepPlan, windows: Windows, definition: ModelDefinition): StepSize {
  const size = { tokens, squares: 0, flops: 0 };
  for (const ids of lanes) {
    for (const id of ids) {
      const length = windowTokens(windows, id);
      size.squares += length * length;
      size.flops += definition.flops(length);
    }
  }
  return size;
}
