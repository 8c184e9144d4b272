// Finds the MPI on this machine: its compiler wrapper and its launcher, which must be of the same kind.

import { spawnSync } from 'node:child_process';
import { UserError } from '../../util/errors.js';
import { kindOfText, MPI_NAMES, type MpiKind } from './mpi-kind.js';

/** A tool of an MPI, by the name under which it was found. */
export interface MpiTool {
  command: string;
  kind: MpiKind;
  /** Its version text. */
  version: string;
}

/** Debian and its derivatives install both under these names; elsewhere the plain name is one of them. */
const COMPILERS = ['mpicc', 'mpicc.openmpi', 'mpicc.mpich'];
const LAUNCHERS = ['mpirun', 'mpirun.openmpi', 'mpiexec', 'mpiexec.hydra'];

const INSTALL =
  'Install Open MPI (Debian, Ubuntu: apt-get install openmpi-bin libopenmpi-dev; Fedora: dnf install openmpi-devel; ' +
  'macOS: brew install open-mpi) or MPICH (apt-get install mpich libmpich-dev), then run the command again.';

function firstOutput(command: string, flags: readonly string[][]): string | undefined {
  for (const flag of flags) {
    const { status, stdout, stderr } = spawnSync(command, flag, { encoding: 'utf8' });
    if (status === 0 && kindOfText(`${stdout}${stderr}`)) return `${stdout}${stderr}`;
  }
  return undefined;
}

function findTool(commands: readonly string[], flags: string[][], kind: MpiKind | undefined): MpiTool | undefined {
  for (const command of commands) {
    const version = firstOutput(command, flags);
    const found = version === undefined ? undefined : kindOfText(version);
    if (version !== undefined && found && (kind ?? found) === found) return { command, kind: found, version };
  }
  return undefined;
}

function missing(what: string, kind: MpiKind | undefined): UserError {
  const name = kind ? MPI_NAMES[kind] : 'MPI';
  return new UserError('no-mpi', `several ranks need ${name}, and ${what} was not found on this machine`, INSTALL);
}

/** `mpicc` of the requested kind, or of any. */
export function findCompiler(kind?: MpiKind): MpiTool {
  const flags = [['--showme:version'], ['-v'], ['-show']];
  const found = findTool(COMPILERS, flags, kind);
  if (!found) throw missing('its compiler mpicc', kind);
  return found;
}

/** `mpirun` of the requested kind, or of any. */
export function findLauncher(kind?: MpiKind): MpiTool {
  const found = findTool(LAUNCHERS, [['--version']], kind);
  if (!found) throw missing('its launcher mpirun', kind);
  return found;
}
