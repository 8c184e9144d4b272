// Files and folders that appear whole or not at all: temp name, fsync, rename, fsync of the parent folder.

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
 * A folder and those above it. Not mkdirSync's `recursive`: in Node 20 that never returns where a folder cannot be made
 * although its parent is there, as in /proc.
 */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    if (existsSync(path)) return;
    const why = error instanceof Error ? error.message : String(error);
    throw new UserError('cannot-write', `cannot make the folder ${path}: ${why}`, 'Choose another place.', {
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

/** writeSync may write less than it was asked to (signals, files above 2 GB): this one does not. */
export function writeFully(fd: number, bytes: Uint8Array, position: number | null = null): void {
  let done = 0;
  while (done < bytes.byteLength) {
    done += writeSync(fd, bytes, done, bytes.byteLength - done, position === null ? null : position + done);
  }
}

/** What a file or folder is called until it is whole. */
function temporaryName(path: string, pid: number | string): string {
  return join(dirname(path), `.${basename(path)}.${pid}.tmp`);
}

/** The temporary name for something large that holds no lock; what killed processes left under such names of it is removed. */
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

/** A file that is written piece by piece and appears with `commit`; disposed of before, it leaves nothing. */
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

/** Write a whole file so that a reader sees the old content or the new one, never a part. */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  using file = new AtomicFile(path);
  file.append(typeof content === 'string' ? Buffer.from(content) : content);
  file.commit();
}
