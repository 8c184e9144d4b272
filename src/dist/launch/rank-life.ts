// The protocol of a rank with its launcher: it announces itself, listens for the request to stop, and on failure ends the
// whole job with one message instead of leaving its peers waiting.

import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { gatherJson } from '../comm/communicator.js';
import { abortRanks } from '../../native/ranks.js';
import { UserError } from '../../util/errors.js';
import { FAULT_CODE, faultLine, helloLine } from './faults.js';
import { joinRanks, launchedRank, type Ranks } from './join-ranks.js';
import { Lifeline } from './lifelines.js';
import { STOP_LINE } from './run-job.js';

/** Exit code for errors that the user must fix. */
const REFUSED = 2;
/** Exit code of a rank that mpirun ends. */
const ENDED = 143;
/** Delay before other ranks report: if all fail in the same way, rank 0 has reported and ended the job by then. */
const POLITENESS_MS = 500;

function launched(): boolean {
  return process.env['TURBOGR_LAUNCHED'] !== undefined;
}

/**
 * Runs `work` as one rank of however many were started. An error on any rank ends the job of all of them with one
 * message; a process on its own just throws it.
 */
export async function withRanks<T>(work: (ranks: Ranks) => Promise<T>): Promise<T> {
  const ranks = join();
  const { rank, size } = ranks.world;
  const lifeline = new Lifeline(rank);
  try {
    const result = await work(ranks);
    await gatherJson(ranks.world, 'done'); // a rank that has left sends no heartbeat: all leave together
    lifeline.close();
    ranks.close();
    return result;
  } catch (error) {
    if (size === 1) throw error;
    return await failRank(rank, error, lifeline);
  }
}

/** Joins; on failure only rank 0 reports why, the others would repeat it. */
function join(): Ranks {
  const rank = launchedRank();
  if (launched()) {
    process.stderr.write(`${helloLine({ rank, host: hostname(), pid: process.pid })}\n`);
    // The launcher asks rank 0 to finish through stdin; mpirun ends a failed job by signals.
    process.prependListener('SIGTERM', () => process.exit(ENDED));
  }
  try {
    return joinRanks();
  } catch (error) {
    if (rank > 0) process.exit(REFUSED);
    if (launched() && error instanceof UserError) {
      const { message: cause, remedy } = error;
      process.stderr.write(`${faultLine({ rank, host: hostname(), by: rank, cause, remedy, final: true })}\n`);
      process.exit(REFUSED);
    }
    throw error;
  }
}

/** Calls back when the launcher asks rank 0 to finish. Does not keep the process alive. */
export function onStopRequest(rank: number, stop: () => void): void {
  if (!launched() || rank !== 0) return;
  createInterface({ input: process.stdin }).on('line', line => {
    if (line === STOP_LINE) stop();
  });
  process.stdin.unref();
}

/** Ends the job of all ranks because of an error on this one. Does not return. */
async function failRank(rank: number, error: unknown, lifeline: Lifeline): Promise<never> {
  const final = error instanceof UserError;
  const cause = final ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  const host = hostname();
  if (launched()) {
    const remedy = final ? { remedy: error.remedy } : {};
    const fault = { rank, host, by: rank, cause, final, ...remedy };
    if (!(await lifeline.report(fault))) process.stderr.write(`${faultLine(fault)}\n`);
    await sleep(POLITENESS_MS);
  } else {
    if (rank !== 0) await sleep(POLITENESS_MS);
    process.stderr.write(`turbogr: rank ${rank} on ${host}: ${cause}\n${final ? `  ${error.remedy}\n` : ''}`);
  }
  abortRanks(final ? REFUSED : FAULT_CODE);
  throw error;
}
