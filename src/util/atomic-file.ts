// Files and folders that are written atomically: temporary name, fsync, rename, fsync of the parent folder.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { UserError } from './errors.js';
import { isAlive } from './process-identity.js';

/**
 * Creates a folder and its parents. Not mkdirSync's `recursive`: in Node 20 that never returns if a folder cannot be created
 * although its parent exists, as in /proc.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    if (existsSync(path)) return;
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError('cannot-write', `cannot create the folder ${path}: ${why}`, 'Choose another path.', {
      cause: error,
    });
  }
}

/** Flushes a folder's entries (after a rename) to the disk. Windows has no such call: NTFS journals renames. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** writeSync may write only a part (signals, files above 2 GB); this writes everything. */
export function writeFully(fd: number, bytes: Uint8Array, position: number | null = null): void {
  let done = 0;
  while (done < bytes.byteLength) {
    done += writeSync(fd, bytes, done, bytes.byteLength - done, position === null ? null : position + done);
  }
}

/** The temporary name of a file or folder until it is complete. */
function temporaryName(path: string, pid: number | string): string {
  return join(dirname(path), `.${basename(path)}.${pid}.tmp`);
}

/** A temporary name for something large that needs no lock; removes leftovers of killed processes under such names. */
export function claimTemporary(path: string): string {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    const pid = /\.(\d+)\.tmp$/.exec(name)?.[1];
    if (pid === undefined || join(folder, name) !== temporaryName(path, pid)) continue;
    const left = statSync(join(folder, name), { throwIfNoEntry: false });
    if (left && !isAlive(Number(pid), left.ctimeMs)) rmSync(join(folder, name), { recursive: true, force: true });
  }
  return temporaryName(path, process.pid);
}

/** A file that is written in pieces and appears with `commit`; if disposed before, it leaves nothing. */
export class AtomicFile {
  readonly #path: string;
  readonly #temp: string;
  #fd: number | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#temp = temporaryName(path, process.pid);
    this.#fd = openSync(this.#temp, 'w');
  }

  append(bytes: Uint8Array): void {
    writeFully(this.#fd!, bytes);
  }

  commit(): void {
    fsyncSync(this.#fd!);
    closeSync(this.#fd!);
    this.#fd = undefined;
    renameSync(this.#temp, this.#path);
    syncFolder(dirname(this.#path));
  }

  [Symbol.dispose](): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    rmSync(this.#temp, { force: true });
  }
}

/** Writes a file so that readers see either the old or the new content, never a part. */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  using file = new AtomicFile(path);
  file.append(typeof content === 'string' ? Buffer.from(content) : content);
  file.commit();
}
