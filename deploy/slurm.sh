#!/usr/bin/env bash
# sbatch deploy/slurm.sh <store> [flags of turbogr train]: two nodes with four ranks each. The store and the run folder lie
# on a disk that all nodes share. Ranks beyond batch.lanes would be idle and are refused. Written after the manuals of Slurm
# and both MPIs; not yet run on a Slurm cluster.
#SBATCH --job-name=turbogr
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
set -euo pipefail
store=$1
shift
# With PMIx for Open MPI, with PMI-2 for MPICH; `srun --mpi=list` shows what the cluster has.
srun --mpi="${SLURM_MPI:-pmix}" --kill-on-bad-exit=1 \
  npx turbogr train "$store" --threads "$SLURM_CPUS_PER_TASK" --set batch.lanes="$SLURM_NTASKS" "$@"
