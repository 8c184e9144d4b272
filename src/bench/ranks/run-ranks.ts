// Runs a program of this folder on several ranks, on this host or on simulated nodes, and returns what rank 0 prints.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { findLauncher } from '../../dist/launch/find-mpi.js';
import type { MpiKind } from '../../dist/launch/mpi-kind.js';
import type { NodeSpaces } from '../../dist/launch/node-spaces.js';
import { UserError } from '../../util/errors.js';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));

export interface RanksToRun {
  /** File name in this folder. */
  program: string;
  /** Passed to the program as JSON. */
  spec: unknown;
  ranks: number;
  /** Nodes to place the ranks on, equally many on each. */
  nodes?: NodeSpaces | undefined;
  mpi?: MpiKind | undefined;
}

export async function runRanks<T>({ program, spec, ranks, nodes, mpi }: RanksToRun): Promise<T> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const words = [...(ranks === 1 ? [] : launchWords(ranks, nodes, mpi)), file, JSON.stringify(spec)];
  const start = nodes?.onFirst(process.execPath, words) ?? { command: process.execPath, arguments: words };
  const child = spawn(start.command, start.arguments, { stdio: ['ignore', 'pipe', 'pipe'] });
  // The launcher asks the ranks to finish at the first signal and kills them at the second.
  const end = () => child.kill('SIGINT') && child.kill('SIGTERM');
  const stop = () => process.exit(1); // otherwise the ranks would keep running
  process.once('exit', end).once('SIGINT', stop).once('SIGTERM', stop);
  let printed = '';
  child.stdout.on('data', chunk => (printed += String(chunk)));
  child.stderr.on('data', chunk => process.stderr.write(String(chunk))); // progress
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  process.removeListener('exit', end).removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
  if (code !== 0)
    throw new UserError(
      'ranks-failed',
      `${program} on ${ranks} ranks ended with ${code}`,
      'The output of the ranks is above.',
    );
  const result: T = JSON.parse(printed.trim().split('\n').at(-1)!);
  return result;
}

/** A single rank needs no MPI. */
function launchWords(ranks: number, nodes: NodeSpaces | undefined, mpi: MpiKind | undefined): string[] {
  const kind = mpi ?? findLauncher().kind;
  const flags = nodes ? nodes.launchFlags(kind, ranks / nodes.names.length) : ['--mpi', kind, '-n', String(ranks)];
  return [MAIN, 'launch', ...flags];
}
