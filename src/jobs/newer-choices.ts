// Options for reading a newer log: those of the previous one, except count filters, since one day's log does not tell how often
// a user or an item occurs; ids have the store's types.

import { PREPARE_OPTIONS } from '../data/prepare/options.js';
import type { SequenceStore } from '../data/store/sequence-store.js';
import type { RunFolder } from '../train/run-folder.js';
import { readPreparedSummary } from './left-out.js';
import type { PrepareChoices } from './log-input.js';

const ROLES = ['user', 'item', 'time', 'action', 'rating'] as const;
/** Options that apply only to the original log. */
const LEFT_OUT = ['minUser', 'minItem', 'kCore', 'catalogue', 'from', 'to', 'split', 'format', 'itemsDialect'];

export function newerChoices(parent: RunFolder, base: SequenceStore, given: PrepareChoices = {}): PrepareChoices {
  const { input } = parent.description;
  const columns = input?.columns ?? readPreparedSummary(base.folder)?.columns ?? {};
  const options = Object.entries(input?.options ?? {}).filter(([key]) => !LEFT_OUT.includes(key));
  const roles = ROLES.flatMap(role => (columns[role] === undefined ? [] : [[role, columns[role]] as const]));
  const { user, item } = base.index.vocabulary;
  const known = PREPARE_OPTIONS.partial().parse({
    ...Object.fromEntries(roles),
    timeUnit: base.index.time.kind,
    ...Object.fromEntries(options),
    idType: user.kind === 'text' || item.kind === 'text' ? 'text' : 'auto',
    ...given,
    split: 'none',
  });
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
}
