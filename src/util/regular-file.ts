// Files that may be anything by the time they are read: a pipe in the place of a file would be waited for without end.

import { readFileSync, statSync } from 'node:fs';

/** Indexes and logs are far smaller; a larger file is none of ours. */
const MOST_BYTES = 1 << 29;

/** Whether there is a file to read, or a link to one; a pipe, a folder, a device or a link to nothing is none. */
export function isRegularFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Content of a text file; undefined when there is no regular file of a sane size, or it went away meanwhile. */
export function readTextFile(path: string): string | undefined {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= MOST_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}
