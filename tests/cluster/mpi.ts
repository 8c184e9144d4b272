// Starts rank programs under the MPIs of this machine. Where there is none, tests skip and say why.

import { spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { buildShim } from '../../src/dist/launch/build-shim.js';
import { findLauncher } from '../../src/dist/launch/find-mpi.js';
import { MPI_KINDS, type MpiKind } from '../../src/dist/launch/mpi-kind.js';
import { mpirunArguments } from '../../src/dist/launch/mpirun-line.js';

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** The MPIs found here. */
export const MPIS: readonly MpiKind[] = MPI_KINDS.filter(kind => {
  try {
    findLauncher(kind);
    buildShim(kind);
    return true;
  } catch {
    return false;
  }
});

export const WHY_SKIPPED = 'no MPI on this machine: apt-get install openmpi-bin libopenmpi-dev mpich libmpich-dev';
if (MPIS.length === 0) process.stderr.write(`cluster tests skip: ${WHY_SKIPPED}\n`);

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
  seconds: number;
}

/** Runs a program to its end. */
export async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  const start = performance.now();
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', chunk => (stdout += String(chunk)));
  child.stderr.on('data', chunk => (stderr += String(chunk)));
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  return { code, stdout, stderr, seconds: (performance.now() - start) / 1000 };
}

/** Runs a rank program of tests/cluster/programs under mpirun itself. */
export function mpirun(kind: MpiKind, ranks: number, program: string, ...args: string[]): Promise<Finished> {
  const file = fileURLToPath(new URL(`./programs/${program}`, import.meta.url));
  const start = mpirunArguments(kind, { count: ranks, extra: [], environment: {} });
  return run(findLauncher(kind).command, [...start, process.execPath, file, ...args]);
}

/** `turbogr launch`. */
export function launch(kind: MpiKind, ranks: number, ...args: string[]): Promise<Finished> {
  return run(process.execPath, [MAIN, 'launch', '--mpi', kind, '-n', String(ranks), ...args]);
}

/** Processes whose command line contains a text, such as the folder of a test. */
export function processesOf(text: string): number[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pid,stat,args'], { encoding: 'utf8' });
  return stdout
    .split('\n')
    .filter(line => line.includes(text) && !/^\s*\d+\s+Z/.test(line) && !line.includes('ps -eo'))
    .map(line => Number.parseInt(line, 10));
}
