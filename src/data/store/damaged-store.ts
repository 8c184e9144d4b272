// The one error for a store whose bytes are not those that prepare wrote.

import { UserError } from '../../util/errors.js';

export function damagedStore(path: string, what: string): UserError {
  return new UserError('damaged-store', `${path} ${what}`, 'Prepare the log again, or copy the store again.');
}
