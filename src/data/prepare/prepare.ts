// prepare(): a raw interaction log becomes a sequence store, or nothing at all. The work happens in a child process
// (worker.ts); this side owns the folder, and removes it when the work fails, is interrupted or is killed.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { UserError } from '../../util/errors.js';
import { type Role, UnknownColumnError } from './columns.js';
import {
  PREPARE_OPTIONS,
  type PrepareInput,
  type PrepareOptions,
  type PrepareReport,
  type Progress,
} from './options.js';
import { Workspace } from './workspace.js';

export type WorkerMessage =
  | { kind: 'progress'; progress: Progress }
  | { kind: 'done'; report: PrepareReport }
  | { kind: 'unknown-column'; role: Role; columns: readonly string[] }
  | { kind: 'user-error'; code: string; message: string; remedy: string }
  | { kind: 'crash'; message: string };

export interface PrepareCallbacks {
  readonly onProgress?: (progress: Progress) => void;
  /** Told the child's process id, for measuring. */
  readonly onStart?: (pid: number) => void;
  readonly signal?: AbortSignal;
}

/** The compiled worker, also when this file runs from src. */
const WORKER = fileURLToPath(new URL('../../../dist/data/prepare/worker.js', import.meta.url));

export async function prepare(input: PrepareInput, callbacks: PrepareCallbacks = {}): Promise<PrepareReport> {
  const options = parseOptions(input);
  callbacks.signal?.throwIfAborted();
  const workspace = new Workspace(options.out, { force: options.force });
  const child = fork(WORKER, { serialization: 'advanced' });
  const stop = (): void => void child.kill('SIGKILL');
  // When this process ends in any way that lets code run, nothing half made stays behind.
  const onExit = (): void => {
    stop();
    workspace.discard();
  };
  process.once('exit', onExit);
  callbacks.signal?.addEventListener('abort', stop);
  try {
    if (child.pid !== undefined) callbacks.onStart?.(child.pid);
    const report = await converse(child, { options, folder: workspace.folder }, callbacks);
    workspace.commit();
    return report;
  } catch (error) {
    await ended(child);
    workspace.discard();
    throw error;
  } finally {
    process.off('exit', onExit);
    callbacks.signal?.removeEventListener('abort', stop);
  }
}

/** Kill the child and wait for it: it must not write into the folder that is about to go. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

export function parseOptions(input: PrepareInput): PrepareOptions {
  const parsed = PREPARE_OPTIONS.safeParse(input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join('.') ?? '';
  throw new UserError('bad-option', `option ${where}: ${issue?.message ?? 'invalid'}`, 'See `turbogr prepare --help`.');
}

function converse(
  child: ChildProcess,
  job: { options: PrepareOptions; folder: string },
  { onProgress, signal }: PrepareCallbacks,
): Promise<PrepareReport> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: WorkerMessage) => {
      if (message.kind === 'progress') onProgress?.(message.progress);
      else if (message.kind === 'done') child.once('exit', () => resolve(message.report));
      else reject(toError(message));
    });
    child.once('error', reject);
    child.once('exit', (status, killedBy) => {
      if (signal?.aborted)
        reject(new UserError('interrupted', 'preparing was interrupted', 'Nothing was left behind; run it again.'));
      else if (killedBy !== null || status !== 0) {
        const how = killedBy === null ? `status ${status}` : killedBy;
        reject(
          new UserError(
            'worker-died',
            `the preparing process ended with ${how}`,
            'If the machine was out of memory, lower --memory.',
          ),
        );
      }
    });
    child.send(job);
  });
}

function toError(message: Exclude<WorkerMessage, { kind: 'progress' | 'done' }>): Error {
  if (message.kind === 'unknown-column') return new UnknownColumnError(message.role, message.columns);
  if (message.kind === 'user-error') return new UserError(message.code, message.message, message.remedy);
  return new Error(`preparing failed: ${message.message}`);
}
