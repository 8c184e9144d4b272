// Explains failures of the work with the right remedy: DuckDB reports a full disk as lack of memory and vice versa, or aborts.

import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { UserError } from '../../util/errors.js';

/** If less space is free after a failure, the disk was full. */
const LITTLE_BYTES = 1 << 22;
const DISK_FULL = /ENOSPC|EDQUOT|No space left|max_temp_directory_size|failed to offload|could not write/i;
const OUT_OF_MEMORY = /Out of Memory|bad_alloc|could not allocate/i;

/** Converts an error of DuckDB or the system into one that the user can act on, if possible. */
export function explainFailure(error: unknown, folder: string): UserError | undefined {
  const text = error instanceof Error ? error.message : String(error);
  const [first = ''] = text.split('\n');
  if (DISK_FULL.test(text)) return diskFull(folder, first, error);
  if (!OUT_OF_MEMORY.test(text)) return undefined;
  if (isFull(folder)) return diskFull(folder, first, error);
  return new UserError(
    'out-of-memory',
    `preparing needs more memory than --memory allows (${first})`,
    'Raise --memory, or lower --threads.',
    { cause: error },
  );
}

/** How the worker process ended, if abnormally. `said` is the end of its standard error. */
export function explainDeath(how: string, { said, folder }: { said: string; folder: string }): UserError {
  const lines = said.split('\n').map(line => line.replace(/^\s*what\(\):/, '').trim()); // prefix of C++ terminate messages
  const last = lines.findLast(line => DISK_FULL.test(line)) ?? lines.findLast(line => line !== '') ?? '';
  if (DISK_FULL.test(said) || isFull(folder)) return diskFull(folder, last || how, undefined);
  return new UserError(
    'worker-died',
    `the preparing process ended with ${how}${last === '' ? '' : `: ${last.slice(0, 200)}`}`,
    how === 'SIGKILL'
      ? 'If the system ended it because memory ran out, lower --memory.'
      : 'Run it again; if it happens twice, report the command and this line.',
  );
}

function isFull(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < LITTLE_BYTES;
  } catch {
    return false;
  }
}

function diskFull(folder: string, reason: string, cause: unknown): UserError {
  return new UserError(
    'disk-full',
    `the disk of ${dirname(folder)} is full (${reason})`,
    'Free some space there, or choose an --out on another disk: sorting needs about the size of the uncompressed log. Then run it again.',
    { cause },
  );
}
