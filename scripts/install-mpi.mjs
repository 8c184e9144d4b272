// Installs both MPIs and the network tools for the cluster tests, only where that is safe: on a Debian or Ubuntu CI machine (CI=true)
// with root access. Elsewhere it does nothing, and the tests are skipped with a reason.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const there = command => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
const wanted = ['mpicc.openmpi', 'mpicc.mpich', 'ip', 'tc'];
const allowed = process.env.CI === 'true' && process.getuid?.() === 0 && existsSync('/etc/debian_version');

if (allowed && !wanted.every(there)) {
  const packages = ['openmpi-bin', 'libopenmpi-dev', 'mpich', 'libmpich-dev', 'iproute2'];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = args => spawnSync('apt-get', ['-q', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] }).status;
  apt(['update']);
  if (apt(['install', '-y', '--no-install-recommends', ...packages]) !== 0)
    console.error('install-mpi: apt-get failed; the tests that need several ranks will skip');
}
