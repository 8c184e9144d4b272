// The error for a store whose bytes differ from what prepare wrote.

import { UserError } from '../../util/errors.js';

export function damagedStore(path: string, what: string): UserError {
  return new UserError('damaged-store', `${path} ${what}`, 'Prepare the log again, or copy the store again.');
}

/** For a store that was used unverified: damage is the likely cause of an otherwise unexplained failure. */
export async function blameStore(error: unknown, store: { verify: () => Promise<void> }): Promise<never> {
  if (!(error instanceof UserError)) await store.verify();
  throw error;
}
