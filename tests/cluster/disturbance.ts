// Training on several ranks with injected faults: a rank is killed, stopped or disconnected after a given number of steps, and
// everything that the launcher promises about it is recorded.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MpiKind } from '../../src/dist/launch/mpi-kind.js';
import type { NodeSpaces } from '../../src/dist/launch/node-spaces.js';
import { MAIN, processesOf } from './mpi.js';

export interface Disturbance {
  how: 'kill' | 'stop' | 'cut';
  mpi: MpiKind;
  ranks: number;
  victim: number;
  /** Steps that the run makes, since it began or was resumed, before anything happens to it. */
  steps: number;
  /** And so many milliseconds more, to be anywhere in a step. */
  later: number;
}

export interface Outcome {
  /** False when the run ended before its time had come. */
  disturbed: boolean;
  code: number | null;
  said: string;
  /** From the disturbance to the end of the job. */
  seconds: number;
  /** What the message must name. */
  expected: RegExp;
}

/** Logged steps that the newest start of a run has made; nothing before it has begun. */
function stepsSinceStart(run: string, before: number): number {
  const path = join(run, 'events.jsonl');
  if (!existsSync(path)) return 0;
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  const starts = lines.map((line, i) => (/"kind":"(run|resumed)"/.test(line) ? i : -1)).filter(i => i >= 0);
  if (starts.length <= before) return 0;
  return lines.slice(starts.at(-1)).filter(line => line.includes('"kind":"step"')).length;
}

/** How often a run was begun or resumed. */
function startsOf(run: string): number {
  const path = join(run, 'events.jsonl');
  return existsSync(path) ? (readFileSync(path, 'utf8').match(/"kind":"(run|resumed)"/g)?.length ?? 0) : 0;
}

/** The process that is rank `rank` of the job whose command lines contain `mark`. */
export function rankProcess(mark: string, rank: number): number | undefined {
  return processesOf(mark).find(pid => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
      const names = ['OMPI_COMM_WORLD_RANK', 'PMI_RANK'];
      return names.some(name => environment.includes(`${name}=${rank}`));
    } catch {
      return false; // it has just ended
    }
  });
}

/** Starts `turbogr launch <training>`, disturbs it and waits for its end. Cutting needs nodes. */
export async function disturb(
  run: string,
  training: readonly string[],
  { how, mpi, ranks, victim, steps, later }: Disturbance,
  nodes?: NodeSpaces,
): Promise<Outcome> {
  const before = startsOf(run);
  const local = ['--mpi', mpi, '-n', String(ranks)];
  const flags = how === 'cut' ? nodes!.launchFlags(mpi, ranks / nodes!.names.length) : local;
  const words = [MAIN, 'launch', ...flags, ...training];
  const start =
    how === 'cut' ? nodes!.onFirst(process.execPath, words) : { command: process.execPath, arguments: words };
  const child = spawn(start.command, start.arguments, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', chunk => (said += String(chunk)));
  child.stderr.on('data', chunk => (said += String(chunk)));
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  while (child.exitCode === null && stepsSinceStart(run, before) < steps) await sleep(5);
  await sleep(later);
  // A cut is noticed by the rank that no longer hears its neighbour: the first one misses the last one.
  const named = how === 'cut' ? ranks - 1 : victim;
  const host = how === 'cut' ? nodes!.names.at(-1)! : hostname();
  const pid = how === 'cut' ? undefined : rankProcess(run, victim);
  const disturbed = child.exitCode === null && (how === 'cut' || pid !== undefined);
  const from = performance.now();
  if (disturbed && how === 'cut') nodes!.setLink(nodes!.names.length - 1, 'down');
  if (disturbed && pid !== undefined) process.kill(pid, how === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  const code = await ended;
  const seconds = (performance.now() - from) / 1000;
  if (how === 'cut') nodes!.setLink(nodes!.names.length - 1, 'up');
  const cause = how === 'kill' ? 'it died' : 'no sign of life';
  return { disturbed, code, said, seconds, expected: new RegExp(`^turbogr: rank ${named} on ${host}: ${cause}`, 'm') };
}

/** Processes of a run, and on the nodes, that are still there after they have had time to go. */
export async function orphansOf(run: string, nodes?: NodeSpaces): Promise<number[]> {
  const find = () => [...processesOf(run), ...(nodes?.processes() ?? [])];
  let left = find();
  for (let waited = 0; left.length > 0 && waited < 100; waited++) {
    await sleep(100);
    left = find();
  }
  return left;
}
