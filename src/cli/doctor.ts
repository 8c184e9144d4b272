// `turbogr doctor`: what this machine offers, what would be slow or fail, and what to do.
import { Command } from '@commander-js/extra-typings';
import { existsSync } from 'node:fs';
import { type Examination, examineMachine } from '../bench/machine/examine.js';
import { type Finding, findings } from '../bench/machine/findings.js';
import { UserError } from '../util/errors.js';

export function doctorCommand() {
  return new Command('doctor')
    .description('examine this machine: what it offers, what would be slow or fail, and what to do')
    .option('--folder <folder>', 'folder for runs, whose disk is measured', '.')
    .option('--json', 'print JSON')
    .action(async ({ folder, json }) => {
      if (!existsSync(folder)) {
        throw new UserError('no-folder', `${folder} does not exist`, 'Name an existing folder with --folder.');
      }
      const found = await examineMachine(folder);
      const problems = findings(found);
      process.stdout.write(
        json ? `${JSON.stringify({ ...found, findings: problems }, null, 2)}\n` : render(found, problems),
      );
      if (problems.some(({ level }) => level === 'fails')) process.exitCode = 1;
    });
}

const gigabytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GB`;

function render(found: Examination, problems: readonly Finding[]): string {
  const { cpu, memory, disk, mpi, core } = found;
  const libc = found.glibc ? `, glibc ${found.glibc}` : '';
  const limited = memory.limitBytes < memory.totalBytes ? `, limited to ${gigabytes(memory.limitBytes)}` : '';
  const rows: [string, string][] = [
    ['turbogr', `${found.version} on ${found.target}, Node ${found.node}${libc}`],
    ['CPU', `${cpu.model}, ${cpu.usable} of ${cpu.logical} cores usable, load ${cpu.load.toFixed(1)}`],
    ['', cpu.features.join(' ')],
    ...coreRows(core),
    ['memory', `${gigabytes(memory.totalBytes)}${limited}, ${gigabytes(memory.availableBytes)} available`],
    ['MPI', mpiText(mpi)],
    [
      'disk',
      `${disk.folder}: ${gigabytes(disk.freeBytes)} free, ${(disk.writeBytesPerSecond / 1e6).toFixed(0)} MB/s written and flushed, ${disk.flushMilliseconds.toFixed(1)} ms per flush`,
    ],
  ];
  const facts = rows.filter(([, text]) => text !== '').map(([name, text]) => `${name.padEnd(9)}${text}`);
  const advice = problems.map(({ level, what, remedy }) => `${level.padEnd(9)}${what}\n         ${remedy}`);
  const verdict = problems.some(({ level }) => level !== 'note') ? [] : ['Nothing is wrong.'];
  return `${[...facts, '', ...advice, ...verdict].join('\n')}\n`;
}

function coreRows(core: Examination['core']): [string, string][] {
  if (!('kernels' in core)) return [];
  const { kernels, threads, peakFlops, readBytesPerSecond } = core;
  return [
    ['core', `${core.path} (${core.from}, ${core.builtAt.slice(0, 16)}), ${core.ops} ops`],
    [
      'kernels',
      `${kernels}, ${threads} threads: FMA peak ${(peakFlops / 1e9).toFixed(0)} GFLOP/s, memory read at ${(readBytesPerSecond / 1e9).toFixed(1)} GB/s`,
    ],
  ];
}

function mpiText({ launcher, compiler, slurm }: Examination['mpi']): string {
  if (!launcher && !compiler) return 'none';
  const parts = [
    launcher ? `${launcher.family} ${launcher.version}, start ranks with ${launcher.path}` : 'no launcher',
    compiler ? `compile with ${compiler.path}` : 'no mpicc',
    ...(slurm ? ['inside a Slurm job'] : []),
  ];
  return parts.join(', ');
}
