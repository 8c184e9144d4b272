// The supported MPI implementations and how each is recognised: by environment variables of its launcher, by the output of
// its tools, and by the name of its library.

export const MPI_KINDS = ['openmpi', 'mpich'] as const;
export type MpiKind = (typeof MPI_KINDS)[number];

export const MPI_NAMES: Readonly<Record<MpiKind, string>> = { openmpi: 'Open MPI', mpich: 'MPICH' };

/** Recognises the version text of `mpirun`, `mpicc` or the library. Intel MPI and MVAPICH share MPICH's ABI. */
export function kindOfText(text: string): MpiKind | undefined {
  if (/open ?mpi|openrte|open-mpi|prrte/i.test(text)) return 'openmpi';
  return /mpich|hydra|mvapich|intel\(r\) mpi/i.test(text) ? 'mpich' : undefined;
}

/** The launcher that started this process as one of several ranks. */
export interface StartedBy {
  /** Undefined where the launcher serves both, as Slurm's does. */
  kind: MpiKind | undefined;
  rank: number;
  size: number;
}

/** From the environment; undefined for a process on its own. */
export function startedBy(env: NodeJS.ProcessEnv): StartedBy | undefined {
  const number = (name: string) => (/^\d+$/.test(env[name] ?? '') ? Number(env[name]) : undefined);
  const found = (rank: string, size: string, kind: MpiKind | undefined): StartedBy | undefined => {
    const [r, n] = [number(rank), number(size)];
    return r === undefined || n === undefined ? undefined : { kind, rank: r, size: n };
  };
  // Slurm sets its variables for a batch script too; only its steps started with --mpi connect ranks.
  const slurm = env['SLURM_STEP_ID'] !== undefined && env['SLURM_MPI_TYPE'] !== 'none';
  return (
    found('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'openmpi') ??
    found('PMI_RANK', 'PMI_SIZE', slurm ? undefined : 'mpich') ??
    (slurm ? found('SLURM_PROCID', 'SLURM_STEP_NUM_TASKS', undefined) : undefined)
  );
}
