// One process at a time in a folder: a file names the process that is there. The file outlives a process that was killed,
// so whoever finds one looks whether its process still runs; a number used again is told by the process's start.

import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from './errors.js';

const HOLDER = z.object({
  pid: z.int(),
  /** When the process began, as its machine tells it; empty where it does not. */
  started: z.string(),
  host: z.string(),
});
type Holder = z.infer<typeof HOLDER>;

/** Held until disposed of, or until the process ends. */
export function lockFolder(folder: string): Disposable {
  const path = join(folder, 'lock');
  const mine: Holder = { pid: process.pid, started: startOf(process.pid), host: hostname() };
  const temp = join(folder, `.lock.${process.pid}.tmp`);
  writeFileSync(temp, JSON.stringify(mine));
  try {
    if (!claim(temp, path)) {
      const holder = readHolder(path);
      if (holder && runs(holder)) {
        throw new UserError(
          'run-busy',
          `${folder} is being written by process ${holder.pid} on ${holder.host}`,
          `Wait for it, or stop it; if it is gone, remove ${path}.`,
        );
      }
      rmSync(path, { force: true });
      if (!claim(temp, path)) return lockFolder(folder);
    }
  } finally {
    rmSync(temp, { force: true });
  }
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

/** A link appears whole, and only once. */
function claim(temp: string, path: string): boolean {
  try {
    linkSync(temp, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

function readHolder(path: string): Holder | undefined {
  try {
    return HOLDER.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    return undefined; // gone since, or not ours
  }
}

/** A process of another machine cannot be asked, so it is taken to run. */
function runs({ pid, started, host }: Holder): boolean {
  if (host !== hostname()) return true;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
  }
  return started === startOf(pid);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/**
 * Fields 3 and 22 of /proc's stat, counted from behind the name, which may hold blanks. A process that ended and whose
 * parent has not asked is listed still; it has no start.
 */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? '' : (fields[19] ?? '');
  } catch {
    return '';
  }
}
