// A loss that is no number, as a person should hear of it.

import { TurboError } from '../tensor/turbo-error.js';
import { UserError } from '../util/errors.js';

/** What a person can do about a loss that is no number; any other error is passed on. */
export function diverged(error: unknown, step: number): unknown {
  if (!(error instanceof TurboError) || error.kind !== 'not-finite') return error;
  const message = `training diverged at step ${step}: ${error.message}`;
  const remedy = 'Lower optimizer.lr, set optimizer.clip (1 is usual), or add warm-up steps; then train a new run.';
  return new UserError('diverged', message, remedy, { cause: error });
}
