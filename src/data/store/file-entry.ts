// The index entry of a complete file: name, checksum, size.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { sha256File } from '../../util/hash.js';
import type { FileEntry } from './store-index.js';

export function fileEntry(folder: string, file: string): Required<FileEntry> {
  const path = join(folder, file);
  return { file, sha256: sha256File(path), bytes: statSync(path).size };
}
