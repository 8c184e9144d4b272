// Which MPI this machine has, and which launcher matches it: from the programs on the PATH, which are only run with
// `--version` and `-show`.

import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

export type MpiFamily = 'Open MPI' | 'MPICH' | 'Intel MPI' | 'unknown';

export interface MpiFound {
  /** The program that starts ranks here, if any. */
  launcher?: { path: string; family: MpiFamily; version: string };
  /** The C compiler wrapper that the shim is compiled with. */
  compiler?: { path: string; family: MpiFamily };
  /** Whether a Slurm allocation is active, where `srun` starts ranks. */
  slurm: boolean;
}

export function findMpi(env: NodeJS.ProcessEnv = process.env): MpiFound {
  const slurm = env['SLURM_JOB_ID'] !== undefined;
  const names = slurm ? ['srun', 'mpirun', 'mpiexec'] : ['mpirun', 'mpiexec', 'srun'];
  const launcher = names.map(name => onPath(name, env)).find(path => path !== undefined);
  const compiler = onPath('mpicc', env);
  return {
    slurm,
    ...(launcher && { launcher: { path: launcher, ...launcherFamily(ask(launcher, '--version')) } }),
    ...(compiler && { compiler: { path: compiler, family: compilerFamily(ask(compiler, '-show')) } }),
  };
}

export function launcherFamily(output: string): { family: MpiFamily; version: string } {
  const version = /\d+(\.\d+)+/.exec(output)?.[0] ?? '';
  if (/Open MPI|OpenRTE|PRRTE/.test(output)) return { family: 'Open MPI', version };
  if (/Intel/.test(output)) return { family: 'Intel MPI', version };
  if (/HYDRA|MPICH/.test(output)) return { family: 'MPICH', version };
  return { family: 'unknown', version };
}

/** By the library that the wrapper links. */
export function compilerFamily(output: string): MpiFamily {
  if (/openmpi|-lopen-rte|-lopen-pal/i.test(output)) return 'Open MPI';
  if (/intel.*mpi|impi/i.test(output)) return 'Intel MPI';
  if (/mpich/i.test(output)) return 'MPICH';
  return /-lmpi\b/.test(output) ? 'Open MPI' : 'unknown';
}

function ask(program: string, flag: string): string {
  const { stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8', timeout: 10_000 });
  return `${stdout ?? ''}${stderr ?? ''}`;
}

function onPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // not here
    }
  }
  return undefined;
}
