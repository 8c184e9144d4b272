// Edits of a store's index.json, sound or not.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson, sha256 } from '../../../src/util/hash.js';

/** `paths` to new values, such as { 'shards.0.users': 5 }; undefined removes. `seal`: with a checksum that fits. */
export function editIndex(folder: string, paths: Record<string, unknown>, { seal = false } = {}): void {
  const file = join(folder, 'index.json');
  const index: unknown = JSON.parse(readFileSync(file, 'utf8'));
  for (const [path, value] of Object.entries(paths)) setAt(index, path.split('.'), value);
  if (seal) {
    setAt(index, ['checksum'], undefined);
    setAt(index, ['checksum'], sha256(canonicalJson(index)));
  }
  writeFileSync(file, JSON.stringify(index));
}

function setAt(node: unknown, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (typeof node !== 'object' || node === null) throw new Error(`there is no '${key}' to edit`);
  if (rest.length > 0) setAt(Reflect.get(node, key), rest, value);
  else if (value === undefined) Reflect.deleteProperty(node, key);
  else Reflect.set(node, key, value);
}
