// Temporary folders of a store while it is built or replaced, and recovery after interruptions. Replacing a store takes two
// renames; after a kill between them, the store is recovered here.

import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { syncFolder } from '../../util/atomic-file.js';
import { isAlive } from '../../util/process-identity.js';
import { INDEX_FILE } from './store-index.js';

/** The folder in which process `pid` builds the store `out`. */
export function partialFolder(out: string, pid: number): string {
  return join(dirname(resolve(out)), `.${basename(resolve(out))}.${pid}.partial`);
}

/** Where the old store is kept while it is being replaced. */
export function replacedFolder(partial: string): string {
  return `${partial}.old`;
}

/** Moves a finished store into place and removes the old one. */
export function replaceStore(partial: string, out: string): void {
  const old = replacedFolder(partial);
  if (existsSync(out)) renameSync(out, old);
  renameSync(partial, out);
  syncFolder(dirname(resolve(out)));
  rmSync(old, { recursive: true, force: true });
}

/** Finishes a replacement that was killed between its two renames: the new store is complete by then. */
export function recoverStore(out: string): void {
  if (existsSync(out)) return;
  for (const { partial, old } of leftovers(out)) {
    if (!existsSync(old)) continue;
    renameSync(existsSync(join(partial, INDEX_FILE)) ? partial : old, out);
    syncFolder(dirname(resolve(out)));
    return;
  }
}

/** Removes leftovers of dead processes for `out`. */
export function removeLeftovers(out: string): void {
  recoverStore(out);
  for (const { partial, old } of leftovers(out)) {
    for (const folder of [partial, old]) rmSync(folder, { recursive: true, force: true });
  }
}

/** Folders of dead processes. */
function leftovers(out: string): { partial: string; old: string }[] {
  const parent = dirname(resolve(out));
  const prefix = `.${basename(resolve(out))}.`;
  if (!existsSync(parent)) return [];
  const pids = readdirSync(parent).flatMap(name => {
    if (!name.startsWith(prefix)) return [];
    const found = /^(\d+)\.partial(\.old)?$/.exec(name.slice(prefix.length));
    return found ? [Number(found[1])] : [];
  });
  return [...new Set(pids)].flatMap(pid => {
    const partial = partialFolder(out, pid);
    const old = replacedFolder(partial);
    const changed = [partial, old].map(folder => statSync(folder, { throwIfNoEntry: false })?.ctimeMs ?? 0);
    return isAlive(pid, Math.max(...changed)) ? [] : [{ partial, old }];
  });
}
