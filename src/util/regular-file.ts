// Guards for reading files that may have been replaced: reading a pipe would block forever.

import { readFileSync, statSync } from 'node:fs';

/** Our indexes and logs are far smaller. */
const MOST_BYTES = 1 << 29;

/** Whether the path is a regular file or a link to one; not a pipe, folder, device or dangling link. */
export function isRegularFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Content of a text file; undefined if there is no regular file of plausible size, or it vanished meanwhile. */
export function readTextFile(path: string): string | undefined {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= MOST_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
}
