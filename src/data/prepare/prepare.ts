// prepare(): converts a raw interaction log into a sequence store, atomically. The work runs in a child process (worker.ts);
// this side owns the folder, and removes it if the work fails, is interrupted or is killed.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { entryModule } from '../../util/entry-module.js';
import { UserError } from '../../util/errors.js';
import { ChoiceError } from './choice-error.js';
import {
  PREPARE_OPTIONS,
  type PrepareInput,
  type PrepareOptions,
  type PrepareReport,
  type Progress,
} from './options.js';
import { explainDeath } from './failures.js';
import { Workspace } from './workspace.js';

/** Characters of the worker's standard error that are kept, from its end. */
const SAID_CHARACTERS = 8192;

export type WorkerMessage =
  | { kind: 'progress'; progress: Progress }
  | { kind: 'done'; report: PrepareReport }
  | { kind: 'choice'; choice: ConstructorParameters<typeof ChoiceError>[0] }
  | { kind: 'user-error'; code: string; message: string; remedy: string }
  | { kind: 'crash'; message: string };

export interface PrepareCallbacks {
  readonly onProgress?: (progress: Progress) => void;
  /** Called with the child's process id, for measuring. */
  readonly onStart?: (pid: number) => void;
  readonly signal?: AbortSignal;
}

export async function prepare(input: PrepareInput, callbacks: PrepareCallbacks = {}): Promise<PrepareReport> {
  const options = parseOptions(input);
  callbacks.signal?.throwIfAborted();
  const workspace = new Workspace(options.out, { force: options.force });
  const { path, execArgv } = entryModule('worker', import.meta.url);
  const child = fork(path, {
    serialization: 'advanced',
    execArgv,
    stdio: ['inherit', 'inherit', 'pipe', 'ipc'],
  });
  const stop = (): void => void child.kill('SIGKILL');
  // If this process exits in a way that still runs code, no partial store is left behind.
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

/** Kills the child and waits for it: it must not write to the folder that is about to be removed. */
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
  throw new UserError(
    'bad-option',
    `option ${where}: ${issue?.message ?? 'invalid'}`,
    'See `npx turbogr prepare --help`.',
  );
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
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-SAID_CHARACTERS);
    });
    // 'close' rather than 'exit': its output has been read by then.
    child.once('close', (status, killedBy) => {
      if (signal?.aborted)
        reject(new UserError('interrupted', 'preparing was interrupted', 'Nothing was left behind; run it again.'));
      else if (killedBy !== null || status !== 0) {
        reject(explainDeath(killedBy ?? `status ${status}`, { said, folder: job.folder }));
      }
    });
    child.send(job, () => undefined); // 'close' reports a child that has already exited
  });
}

function toError(message: Exclude<WorkerMessage, { kind: 'progress' | 'done' }>): Error {
  if (message.kind === 'choice') return new ChoiceError(message.choice);
  if (message.kind === 'user-error') return new UserError(message.code, message.message, message.remedy);
  return new Error(`preparing failed: ${message.message}`);
}
