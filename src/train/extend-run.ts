// `train` with more epochs than the run in the folder: it continues as if it had been configured that long from the start.
// That is refused where a setting makes earlier steps depend on the total number of epochs.

import type { ResolvedConfig } from '../config/schema.js';
import { UserError } from '../util/errors.js';

/** Undefined unless `wanted` is the same run with more epochs; throws if it is, but cannot be extended. */
export function longerRun(path: string, known: ResolvedConfig, wanted: ResolvedConfig): ResolvedConfig | undefined {
  if (wanted.epochs <= known.epochs) return undefined;
  const obstacle = obstacleTo(known);
  if (obstacle === undefined) return { ...known, epochs: wanted.epochs };
  throw new UserError(
    'cannot-extend',
    `${path} cannot be extended from ${known.epochs} to ${wanted.epochs} epochs: ${obstacle}`,
    `Train a new run from its weights: npx turbogr export ${path} --out weights.safetensors, then ` +
      'npx turbogr train <data> --run <new folder> --initial-weights weights.safetensors.',
  );
}

/** The setting, and why earlier steps would have been different. */
function obstacleTo({ optimizer, evaluation, epochs }: ResolvedConfig): string | undefined {
  const { kind } = optimizer.schedule;
  if (kind !== 'constant') {
    return `optimizer.schedule.kind is ${kind}, so every step's rate depends on the number of epochs`;
  }
  if (epochs % evaluation.every !== 0) {
    return `evaluation.every is ${evaluation.every}, so the validation after epoch ${epochs} belongs to the shorter run only`;
  }
  return undefined;
}
