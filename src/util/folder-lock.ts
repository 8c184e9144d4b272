// Lets one process at a time write to a folder. The lock is a subfolder `lock` with exactly one file, whose name identifies
// the holder. Every transition is a single rename, so exactly one of several contenders wins:
//
//   free       no `lock`, or an empty one
//   take       rename a temporary folder with our file onto `lock`: fails unless that is absent or empty
//   take over  rename the dead holder's file to ours: fails unless it is still there; names are never reused
//   release    move our file out of `lock`, then remove the empty folder
//
// A holder on this machine is checked directly (process id and start time). One that is not visible from here (another
// machine, a container before its restart) renews its file every few seconds; without renewals it is considered dead.

import { mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder } from './atomic-file.js';
import { UserError } from './errors.js';
import { errorCode, ownIdentity, type ProcessIdentity, stillRuns } from './process-identity.js';

export interface LockTiming {
  /** Milliseconds between renewals. */
  renew: number;
  /** After this long without a renewal, an invisible holder is considered dead. */
  patience: number;
  /** If the last renewal is older than this, no waiting is needed; generous, because clocks of machines differ. */
  longDead: number;
}

const TIMING: LockTiming = { renew: 3_000, patience: 30_000, longDead: 300_000 };

export interface FolderLock extends Disposable {
  /** Throws if another process has taken over the folder, which it may after this one was silent for too long. */
  assertHeld(): void;
}

/** Held until disposed, or until the process ends. Waits until an invisible holder renews its lock or is considered dead. */
export async function lockFolder(folder: string, timing: LockTiming = TIMING): Promise<FolderLock> {
  const lock = join(folder, 'lock');
  const mine = nameOf(ownIdentity());
  for (;;) {
    makeFolder(folder);
    if (takeFree(folder, lock, mine)) return holdLock(folder, mine, timing);
    const file = only(lock);
    if (file === undefined) continue; // released, or changing hands
    const holder = parseName(file);
    if (!holder) throw foreign(join(lock, file));
    const alive = stillRuns(holder) ?? (await renews(join(lock, file), timing));
    if (alive) {
      throw new UserError(
        'run-busy',
        `${folder} is being written by process ${holder.pid} on ${holder.host}`,
        'Wait for it, or stop it.',
      );
    }
    if (takeOver(lock, file, mine)) return holdLock(folder, mine, timing);
  }
}

function takeFree(folder: string, lock: string, mine: string): boolean {
  const temp = join(folder, `.lock.${mine}.tmp`);
  try {
    mkdirSync(temp);
    writeFileSync(join(temp, mine), '');
    renameSync(temp, lock);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') throw foreign(lock);
    if (['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(String(errorCode(error)))) return false; // held, or the folder is gone
    throw error;
  } finally {
    rmSync(temp, { recursive: true, force: true });
  }
}

function takeOver(lock: string, file: string, mine: string): boolean {
  try {
    touch(join(lock, file)); // so that the lock is fresh from the start
    renameSync(join(lock, file), join(lock, mine));
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false; // another process was faster
    throw error;
  }
}

/** Removes leftovers of processes that were killed while taking the lock, but not those of running processes. */
function sweep(folder: string): void {
  for (const entry of readdirSync(folder)) {
    const name = /^\.lock\.(.+)\.tmp$/.exec(entry)?.[1];
    const owner = name === undefined ? undefined : parseName(name);
    if (owner && stillRuns(owner) === false) rmSync(join(folder, entry), { recursive: true, force: true });
  }
}

function holdLock(folder: string, mine: string, { renew }: LockTiming): FolderLock {
  sweep(folder);
  const file = join(folder, 'lock', mine);
  let lost = false;
  const renewal = () => {
    try {
      touch(file);
    } catch (error) {
      lost ||= errorCode(error) === 'ENOENT';
    }
  };
  const timer = setInterval(renewal, renew).unref();
  return {
    assertHeld: () => {
      renewal();
      if (!lost) return;
      throw new UserError('lock-lost', `another process has taken over ${folder}`, 'Let that one finish.');
    },
    [Symbol.dispose]: () => {
      clearInterval(timer);
      release(folder, mine);
    },
  };
}

function release(folder: string, mine: string): void {
  const gone = join(folder, `.lock.${mine}.tmp`);
  try {
    renameSync(join(folder, 'lock', mine), gone);
    rmSync(gone);
    rmdirSync(join(folder, 'lock'));
  } catch {
    // Taken over, or the folder was removed: nothing of ours is left.
  }
}

function touch(file: string): void {
  const now = new Date();
  utimesSync(file, now, now);
}

/** The file in the lock; undefined if there is none. */
function only(lock: string): string | undefined {
  try {
    return readdirSync(lock)[0];
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Watches for a renewal. The other machine's clock is trusted only for very old locks. */
async function renews(file: string, { renew, patience, longDead }: LockTiming): Promise<boolean> {
  const seen = renewedAt(file);
  if (seen === undefined || Date.now() - seen > longDead) return false;
  for (let waited = 0; waited < patience; waited += renew / 2) {
    await sleep(renew / 2);
    const now = renewedAt(file);
    if (now === undefined) return false;
    if (now !== seen) return true;
  }
  return false;
}

function renewedAt(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs;
}

let taken = 0;

/** Unique: a process counts its locks. Fields are separated by dots; the host comes last because it may contain dots. */
function nameOf({ pid, started, place, host }: ProcessIdentity): string {
  return ['held', pid, started, place, ++taken, host.replace(/[^\w.-]/g, '_')].join('.');
}

function parseName(name: string): ProcessIdentity | undefined {
  const [, pid, started, place, host] = /^held\.(\d+)\.(\d*)\.(\w+)\.\d+\.(.*)$/.exec(name) ?? [];
  if (pid === undefined || started === undefined || place === undefined || host === undefined) return undefined;
  return { pid: Number(pid), started, place, host };
}

function foreign(path: string): UserError {
  return new UserError(
    'bad-lock',
    `${path} is not a lock of turbogr`,
    'If no process writes in this folder, remove it.',
  );
}
