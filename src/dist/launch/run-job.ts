// Runs a job of several ranks under mpirun: forwards its output, turns faults into one message, passes Ctrl-C to rank 0 as
// a request to finish, and restarts a job that ended by a fault up to the requested number of times.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { UserError } from '../../util/errors.js';
import { FAULT_CODE, FaultFinder } from './faults.js';
import type { Lifelines } from './lifelines.js';

export interface JobCommand {
  command: string;
  arguments: readonly string[];
  environment: Readonly<Record<string, string>>;
  lifelines: Lifelines;
  restarts: number;
}

/** A line on rank 0's stdin that asks to finish the step and write a checkpoint. */
export const STOP_LINE = 'stop';
/** Time limit after the first fault report: an mpirun that cannot reach one of its hosts would wait forever. */
const GRACE_MS = 3000;
/** Delay between a fault and the restart. */
const BREATH_MS = 1000;

/** The exit code of the job. */
export async function runJob(job: JobCommand): Promise<number> {
  for (let left = job.restarts; ; left--) {
    process.exitCode = undefined;
    job.lifelines.broken = undefined;
    const { code, finder, interrupted } = await runOnce(job);
    const fault = finder.cause(job.lifelines.broken);
    if (code === 0 || interrupted) return code;
    if (!fault) throw new UserError('job-failed', `the job ended with code ${code}`, 'Its last lines are above.');
    const who = finder.common ? '' : `rank ${fault.rank} on ${fault.host}: `;
    const mended = fault.remedy ?? 'The newest checkpoint is intact; run the command again to resume from it.';
    if (!fault.final) process.exitCode = FAULT_CODE;
    if (fault.final || left === 0) throw new UserError('rank-failed', `${who}${fault.cause}`, mended);
    process.stderr.write(`turbogr: ${who}${fault.cause}; starting again, ${left} left\n`);
    await new Promise(resolve => setTimeout(resolve, BREATH_MS));
  }
}

interface Ended {
  code: number;
  finder: FaultFinder;
  interrupted: boolean;
}

async function runOnce({ command, arguments: given, environment, lifelines }: JobCommand): Promise<Ended> {
  const finder = new FaultFinder();
  // Its own process group: the terminal's Ctrl-C must not reach mpirun, which would kill the ranks.
  const child = spawn(command, given, {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  let patience: NodeJS.Timeout | undefined;
  const giveUp = () => {
    end(child, 'SIGKILL');
    for (const output of [child.stdout, child.stderr]) output.destroy(); // ssh connections to the lost host hold them open too
  };
  const waitIfReported = () => {
    if (finder.reported) patience ??= setTimeout(giveUp, GRACE_MS);
  };
  const pass = (from: Readable, to: Writable) =>
    createInterface({ input: from }).on('line', line => {
      const passed = finder.take(line);
      if (passed !== undefined) to.write(`${passed}\n`);
      waitIfReported();
    });
  lifelines.onFault = fault => {
    finder.add(fault);
    waitIfReported();
  };
  pass(child.stdout, process.stdout); // MPICH prints its banners there
  pass(child.stderr, process.stderr);
  let interrupted = false;
  const onSignal = () => {
    if (interrupted) return end(child, 'SIGKILL');
    interrupted = true;
    child.stdin.write(`${STOP_LINE}\n`);
  };
  const onExit = () => end(child, 'SIGKILL');
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('exit', onExit);
  child.stdin.on('error', () => undefined); // the ranks are gone, and the code says why
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject).once('close', (status, signal) => resolve(status ?? (signal ? 128 : 1)));
    });
    return { code, finder, interrupted };
  } finally {
    clearTimeout(patience);
    process.removeListener('SIGINT', onSignal).removeListener('SIGTERM', onSignal).removeListener('exit', onExit);
  }
}

function end(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has just ended.
  }
}
