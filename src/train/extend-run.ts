// `train` with more epochs than the run in the folder has: the run goes on as if it had been longer from the beginning,
// where that is so. It is not where a key makes earlier steps depend on how many are to come.

import type { ResolvedConfig } from '../config/schema.js';
import { UserError } from '../util/errors.js';

/** Undefined when `wanted` is not the same run with more epochs; throws when it is and cannot be. */
export function longerRun(path: string, known: ResolvedConfig, wanted: ResolvedConfig): ResolvedConfig | undefined {
  if (wanted.epochs <= known.epochs) return undefined;
  const obstacle = obstacleTo(known);
  if (obstacle === undefined) return { ...known, epochs: wanted.epochs };
  throw new UserError(
    'cannot-extend',
    `${path} cannot go on from ${known.epochs} to ${wanted.epochs} epochs: ${obstacle}`,
    `Train a new run from its weights: npx turbogr export ${path} --out weights.safetensors, then ` +
      'npx turbogr train <data> --run <new folder> --initial-weights weights.safetensors.',
  );
}

/** The key, and why steps so far would have been others. */
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
