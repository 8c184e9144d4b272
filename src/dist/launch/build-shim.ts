// The shim between turbogr and the machine's MPI (native/mpi), compiled on first use and kept per MPI version in the
// user's cache folder.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeFolder } from '../../util/atomic-file.js';
import { cacheFolder } from '../../util/cache-folder.js';
import { UserError } from '../../util/errors.js';
import { sha256 } from '../../util/hash.js';
import { findCompiler } from './find-mpi.js';
import type { MpiKind } from './mpi-kind.js';

const SOURCE = fileURLToPath(new URL('../../../native/mpi/', import.meta.url));

export interface Shim {
  path: string;
  kind: MpiKind;
  /** Whether it was compiled now. */
  built: boolean;
}

/** Sources and headers of the shim. */
export function shimFiles(): string[] {
  const names = readdirSync(SOURCE).filter(name => /\.[ch]$/.test(name));
  return names.sort().map(name => join(SOURCE, name));
}

/** The shim for this machine's MPI of the kind, compiled unless the cache has it. Several processes may do it at once. */
export function buildShim(wanted?: MpiKind): Shim {
  const { command, kind, version } = findCompiler(wanted);
  const files = shimFiles();
  const identity = [version, process.arch, ...files.map(file => readFileSync(file))].join('\n');
  const folder = join(cacheFolder(), 'mpi');
  const path = join(folder, `${kind}-${sha256(identity).slice(0, 16)}.so`);
  if (existsSync(path)) return { path, kind, built: false };
  makeFolder(folder);
  const made = `${path}.${process.pid}`;
  const sources = files.filter(file => file.endsWith('.c'));
  const flags = ['-O2', '-fPIC', '-shared', '-fvisibility=hidden', ...sources, '-o', made];
  const { status, stderr } = spawnSync(command, flags, { encoding: 'utf8' });
  if (status !== 0) {
    rmSync(made, { force: true });
    throw new UserError(
      'shim-not-built',
      `${command} could not compile ${SOURCE}: ${stderr.trim().split('\n')[0] ?? 'no message'}`,
      'Install the development files of your MPI and a C compiler (Debian: apt-get install libopenmpi-dev gcc).',
    );
  }
  renameSync(made, path);
  return { path, kind, built: true };
}
