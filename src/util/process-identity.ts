// Identifies a process so that another one can check later whether it still runs. Process ids are reused; together with start
// time, boot id and PID namespace (a container has its own) they are unique.

import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { sha256 } from './hash.js';

export interface ProcessIdentity {
  pid: number;
  /** Start time as reported by the kernel; empty if unavailable. */
  started: string;
  /** Scope of `pid`: a hash of boot and PID namespace, or of the host name without /proc. */
  place: string;
  host: string;
}

/** Clock ticks in /proc, the same on every architecture. */
const TICKS_PER_SECOND = 100;

let place: string | undefined;

function currentPlace(): string {
  place ??= sha256(
    fromProc(() => `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')} ${readlinkSync('/proc/self/ns/pid')}`) ??
      hostname(),
  ).slice(0, 12);
  return place;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: startOf(process.pid), place: currentPlace(), host: hostname() };
}

/** Whether the process still runs; undefined if it is not visible from here (another machine, boot or container). */
export function stillRuns({ pid, started, place: where }: ProcessIdentity): boolean | undefined {
  if (where !== currentPlace()) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
  }
  return started === startOf(pid);
}

/**
 * For files that record only a process id: whether the process that modified the file, last at `changed` (ms since 1970),
 * still runs. If the id was reused since, the new process or thread started later.
 */
export function isAlive(pid: number, changed: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return false;
  }
  const began = beginningOf(pid);
  return began === undefined || began <= changed + 2000; // the kernel reports its boot time in whole seconds
}

/** In ms since 1970; undefined if unavailable. */
function beginningOf(pid: number): number | undefined {
  const ticks = startOf(pid);
  const boot = fromProc(() => /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]);
  return ticks === '' || boot === undefined ? undefined : (Number(boot) + Number(ticks) / TICKS_PER_SECOND) * 1000;
}

/**
 * Fields 3 and 22 of /proc/<pid>/stat, counted from the end of the name, which may contain spaces. A zombie (ended, not yet
 * reaped) is still listed; it counts as ended.
 */
function startOf(pid: number): string {
  const stat = fromProc(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  if (stat === undefined) return '';
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? '' : (fields[19] ?? '');
}

function fromProc<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** The `code` of a system error, such as ENOENT. */
export function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
