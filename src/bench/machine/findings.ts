// Interprets an examination: what would fail, what would be slow, and the remedy. A pure function, so that it can be tested
// for machines we do not have.

import { KERNELS_VARIABLE } from '../../native/device.js';
import type { Examination } from './examine.js';

export interface Finding {
  level: 'fails' | 'slow' | 'note';
  what: string;
  remedy: string;
}

const OLDEST_NODE = [20, 19] as const;
const GIGABYTE = 2 ** 30;

export function findings(found: Examination): Finding[] {
  return [node(found), ...core(found), ...memory(found), ...mpi(found), ...disk(found)].filter(
    finding => finding !== undefined,
  );
}

function node({ node }: Examination): Finding | undefined {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return undefined;
  return { level: 'fails', what: `Node ${node} is too old`, remedy: `Install Node ${OLDEST_NODE.join('.')} or newer.` };
}

function core({ core, cpu, target }: Examination): Finding[] {
  if (!('kernels' in core)) return [{ level: 'fails', what: core.message, remedy: core.remedy }];
  const found: Finding[] = [];
  if (core.kernels === 'portable') {
    const what = target.includes('x64')
      ? 'this CPU (or its virtual machine) offers no AVX2, FMA and F16C: portable kernels, about 4 to 8 times slower'
      : 'this processor uses the portable kernels, without hand-written vector code';
    const remedy = target.includes('x64')
      ? 'Use a CPU of 2013 or later; in a virtual machine, pass the host CPU through.'
      : 'Results are correct, only slower; train on x64 with AVX2 if speed matters.';
    found.push({ level: 'slow', what, remedy });
  }
  if (core.kernels === 'avx2' && cpu.features.includes('avx512f')) {
    found.push({
      level: 'note',
      what: 'this CPU has AVX-512, and the kernels use AVX2: shares of the peak are those of the AVX2 peak above',
      remedy: `Unset ${KERNELS_VARIABLE}, if it is set; results are the same.`,
    });
  }
  if (cpu.load > cpu.usable) {
    found.push({
      level: 'slow',
      what: `the load is ${cpu.load.toFixed(1)} on ${cpu.usable} usable cores: other processes compete, so the figures above are low`,
      remedy: 'Measure again when the machine is idle. Load affects only the speed of training, not its results.',
    });
  }
  return found;
}

function memory({ memory }: Examination): Finding[] {
  const found: Finding[] = [];
  if (memory.availableBytes < GIGABYTE) {
    found.push({
      level: 'slow',
      what: `${(memory.availableBytes / GIGABYTE).toFixed(1)} GB of memory available`,
      remedy: 'Prepare with --memory 512MB and train --size tiny, or free some memory.',
    });
  }
  if (memory.hugePages === 'never') {
    found.push({
      level: 'slow',
      what: 'transparent huge pages are off: large models lose a few percent to page walks',
      remedy: 'As root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled',
    });
  }
  return found;
}

function mpi({ mpi }: Examination): Finding[] {
  const { launcher, compiler } = mpi;
  if (!launcher && !compiler) {
    const remedy =
      'Install Open MPI or MPICH (Debian: apt-get install openmpi-bin libopenmpi-dev) to train on several ranks.';
    return [{ level: 'note', what: 'no MPI was found; training on one rank needs none', remedy }];
  }
  if (!launcher || !compiler) {
    const missing = launcher ? 'a compiler wrapper (mpicc)' : 'a launcher (mpirun)';
    return [
      { level: 'note', what: `MPI is incomplete: there is no ${missing}`, remedy: 'Install the rest of the same MPI.' },
    ];
  }
  const families = [launcher.family, compiler.family];
  if (families.includes('unknown') || launcher.family === compiler.family || launcher.path.endsWith('srun')) return [];
  return [
    {
      level: 'fails',
      what: `${launcher.path} is ${launcher.family}, ${compiler.path} is ${compiler.family}: every rank would start alone`,
      remedy: `Put the launcher and the mpicc of one MPI first in PATH.`,
    },
  ];
}

function disk({ disk }: Examination): Finding[] {
  const found: Finding[] = [];
  if (disk.freeBytes < GIGABYTE) {
    const what = `${(disk.freeBytes / GIGABYTE).toFixed(1)} GB free in ${disk.folder}`;
    found.push({ level: 'fails', what, remedy: 'Free some space, or keep runs and stores on another disk.' });
  }
  if (disk.writeBytesPerSecond < 50e6) {
    found.push({
      level: 'slow',
      what: `${disk.folder} takes ${(disk.writeBytesPerSecond / 1e6).toFixed(0)} MB/s: checkpoints will slow training down`,
      remedy: 'Keep runs and stores on a local SSD.',
    });
  }
  if (disk.flushMilliseconds > 50) {
    found.push({
      level: 'slow',
      what: `a flush to ${disk.folder} takes ${disk.flushMilliseconds.toFixed(0)} ms: POST /v1/events waits for one`,
      remedy: 'Keep the folder of `npx turbogr serve --events` on a local SSD.',
    });
  }
  return found;
}
