// A loss that is not finite, as a readable error.

import { TurboError } from '../tensor/turbo-error.js';
import { UserError } from '../util/errors.js';

/** Adds a remedy to the error of a non-finite loss; any other error is passed on. */
export function diverged(error: unknown, step: number): unknown {
  if (!(error instanceof TurboError) || error.kind !== 'not-finite') return error;
  const message = `training diverged at step ${step}: ${error.message}`;
  const remedy = 'Lower optimizer.lr, set optimizer.clip (1 is usual), or add warm-up steps; then train a new run.';
  return new UserError('diverged', message, remedy, { cause: error });
}
