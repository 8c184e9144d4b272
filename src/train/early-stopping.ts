// Tracks the best validation and whether to continue. Higher is better; an equal value is no improvement.

export interface BestSoFar {
  value: number;
  step: number;
  epoch: number;
}

export interface EarlyStoppingState {
  best: BestSoFar | null;
  /** Validations since the best. */
  waited: number;
}

export const NOTHING_YET: EarlyStoppingState = { best: null, waited: 0 };

export function afterValidation(state: EarlyStoppingState, seen: BestSoFar): EarlyStoppingState {
  const better = state.best === null || seen.value > state.best.value;
  return better ? { best: seen, waited: 0 } : { best: state.best, waited: state.waited + 1 };
}

export function shouldStop(state: EarlyStoppingState, patience: number | undefined): boolean {
  return patience !== undefined && state.waited >= patience;
}
