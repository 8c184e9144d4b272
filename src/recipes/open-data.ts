// The data of a run: a prepared store, or a log file that is prepared first, into the run's folder.

import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PrepareInput, Progress } from '../data/prepare/options.js';
import { prepare } from '../data/prepare/prepare.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { UserError } from '../util/errors.js';

/** Columns and filters for preparing a log file; files and place are known. */
export type PrepareChoices = Omit<PrepareInput, 'files' | 'out' | 'force'>;

export interface DataOptions {
  /** A store's folder, or a log file. */
  data: string;
  prepare?: PrepareChoices;
  onPrepare?: (progress: Progress) => void;
  signal?: AbortSignal;
}

/** A run that has begun keeps the store it began with; a new one prepares the log as it is now. */
export async function openData(options: DataOptions, run: string): Promise<SequenceStore> {
  const { data, onPrepare, signal } = options;
  if (!existsSync(data)) {
    throw new UserError('no-data', `${data} does not exist`, 'Give a folder made by `turbogr prepare`, or a log file.');
  }
  if (statSync(data).isDirectory()) return SequenceStore.open(data);
  const out = join(run, 'store');
  if (!existsSync(join(run, 'run.json'))) {
    await prepare(
      { ...options.prepare, files: [data], out, force: true },
      { ...(onPrepare && { onProgress: onPrepare }), ...(signal && { signal }) },
    );
  }
  return SequenceStore.open(out);
}
