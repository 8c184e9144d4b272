// Where a store grows before it is moved into its place, and what is left there when that is cut short. Replacing a store
// takes two renames; whoever looks for the store after a kill between them finds it again here.

import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { syncFolder } from '../../util/atomic-file.js';
import { isAlive } from '../../util/process-identity.js';
import { INDEX_FILE } from './store-index.js';

/** The folder in which process `pid` makes the store `out`. */
export function partialFolder(out: string, pid: number): string {
  return join(dirname(resolve(out)), `.${basename(resolve(out))}.${pid}.partial`);
}

/** Where a store waits while another takes its place. */
export function replacedFolder(partial: string): string {
  return `${partial}.old`;
}

/** Moves a finished store into place; the one that was there goes. */
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

/** Removes what processes that are gone left of their work on `out`. */
export function removeLeftovers(out: string): void {
  recoverStore(out);
  for (const { partial, old } of leftovers(out)) {
    for (const folder of [partial, old]) rmSync(folder, { recursive: true, force: true });
  }
}

/** Folders of processes that are gone. */
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
