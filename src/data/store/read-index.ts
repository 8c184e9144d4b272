// Reads index.json; accepts only an index that is complete and consistent with itself and with the files.

import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { canonicalJson, sha256 } from '../../util/hash.js';
import { checkFiles, checkNumbers } from './check-index.js';
import { damagedStore } from './damaged-store.js';
import { INDEX_FILE, STORE_INDEX, type StoreIndex } from './store-index.js';
import { recoverStore } from './store-place.js';

/** An index lists one line per 2^21 events and the labels of actions and features: far below this. */
const MAX_INDEX_BYTES = 1 << 28;

/** The contents of the files are checked by verify-store.ts. */
export function readStoreIndex(folder: string): StoreIndex {
  recoverStore(folder);
  const path = join(folder, INDEX_FILE);
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) {
    throw new UserError(
      'not-a-store',
      `${folder} has no ${INDEX_FILE}`,
      'Give a folder made by `npx turbogr prepare`.',
    );
  }
  if (!found.isFile() || found.size > MAX_INDEX_BYTES)
    throw damagedStore(path, 'is not a regular file of plausible size');
  const index = parseIndex(path, readFileSync(path, 'utf8'));
  checkNumbers(path, index);
  checkFiles(folder, index);
  return index;
}

function parseIndex(path: string, text: string): StoreIndex {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw damagedStore(path, 'is not a store index: it is not JSON');
  }
  const parsed = STORE_INDEX.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw damagedStore(path, `is not a store index: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
  }
  const { checksum, ...index } = parsed.data;
  // Otherwise a version 2 index labelled 1 would be accepted without its checksum.
  if ((index.version === 2) !== (checksum !== undefined)) {
    throw damagedStore(path, `has version ${index.version} and ${checksum === undefined ? 'no' : 'a'} checksum`);
  }
  if (checksum !== undefined && sha256(canonicalJson(index)) !== checksum) {
    throw damagedStore(path, 'does not match its own checksum');
  }
  return index;
}
