// The folder in which a store grows before it is moved into place. Its name carries the process that owns it, so that a
// later run can tell a leftover of a killed one and remove it.

import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makeFolder, syncFolder } from '../../util/atomic-file.js';
import { UserError } from '../../util/errors.js';
import { INDEX_FILE } from '../store/store-index.js';

export class Workspace {
  readonly folder: string;
  private readonly out: string;
  private readonly force: boolean;

  /** Refuses an `out` that is in the way; removes what killed runs for the same `out` left behind. */
  constructor(out: string, { force, pid = process.pid }: { force: boolean; pid?: number }) {
    this.out = resolve(out);
    this.force = force;
    this.refuseExisting();
    const parent = dirname(this.out);
    makeFolder(parent);
    removeLeftovers(parent, basename(this.out));
    this.folder = join(parent, partialName(basename(this.out), pid));
    makeFolder(this.folder);
  }

  /** Move the finished store into place. */
  commit(): void {
    this.refuseExisting();
    const old = `${this.folder}.old`;
    if (existsSync(this.out)) renameSync(this.out, old);
    renameSync(this.folder, this.out);
    syncFolder(dirname(this.out));
    rmSync(old, { recursive: true, force: true });
  }

  discard(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private refuseExisting(): void {
    if (!existsSync(this.out)) return;
    if (!existsSync(join(this.out, INDEX_FILE)) && readdirSync(this.out).length > 0) {
      throw new UserError('out-not-a-store', `${this.out} exists and is not a store`, 'Give another --out.');
    }
    if (!this.force && existsSync(join(this.out, INDEX_FILE))) {
      throw new UserError(
        'store-exists',
        `${this.out} holds a store already`,
        'Give another --out, or --force to replace it.',
      );
    }
  }
}

function partialName(name: string, pid: number): string {
  return `.${name}.${pid}.partial`;
}

function removeLeftovers(parent: string, name: string): void {
  for (const entry of readdirSync(parent)) {
    const pid = entry.startsWith(`.${name}.`) ? /\.(\d+)\.partial(\.old)?$/.exec(entry)?.[1] : undefined;
    if (pid === undefined || !entry.startsWith(partialName(name, Number(pid))) || isAlive(Number(pid))) continue;
    rmSync(join(parent, entry), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
