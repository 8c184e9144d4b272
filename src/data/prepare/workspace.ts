// The folder in which a store is built before it is moved into place. Its name identifies the owning process, so that a later
// run can recognise and remove leftovers of a killed one.

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolder } from '../../util/atomic-file.js';
import { UserError } from '../../util/errors.js';
import { INDEX_FILE } from '../store/store-index.js';
import { partialFolder, removeLeftovers, replaceStore } from '../store/store-place.js';

export class Workspace {
  readonly folder: string;
  private readonly out: string;
  private readonly force: boolean;

  /** Refuses an existing `out` that must not be replaced; removes leftovers of killed runs for the same `out`. */
  constructor(out: string, { force, pid = process.pid }: { force: boolean; pid?: number }) {
    this.out = resolve(out);
    this.force = force;
    makeFolder(dirname(this.out));
    removeLeftovers(this.out);
    this.refuseExisting();
    this.folder = partialFolder(this.out, pid);
    makeFolder(this.folder);
  }

  /** Moves the finished store into place. */
  commit(): void {
    this.refuseExisting();
    replaceStore(this.folder, this.out);
  }

  discard(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private refuseExisting(): void {
    if (!existsSync(this.out)) return;
    if (holdsOther(this.out)) {
      throw new UserError('out-not-a-store', `${this.out} exists and is not a store`, 'Give another --out.');
    }
    if (!this.force && existsSync(join(this.out, INDEX_FILE))) {
      throw new UserError(
        'store-exists',
        `${this.out} already holds a store`,
        'Give another --out, or --force to replace it.',
      );
    }
  }
}

/** The files of a store. */
const STORE_FILE = /^([\w-]+\.safetensors|index\.json|report\.json|rejects\.csv)$/;

/** Whether replacing the folder would remove anything other than a store, valid or damaged. Other folders may have an index.json too. */
function holdsOther(folder: string): boolean {
  const names = readdirSync(folder);
  if (names.length === 0) return false;
  return !names.every(name => STORE_FILE.test(name)) || !names.some(name => name.endsWith('.safetensors'));
}
