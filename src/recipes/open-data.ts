// The data of a job: a prepared store, or a log file that is prepared first, beside the run.

import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PrepareInput, Progress } from '../data/prepare/options.js';
import { prepare } from '../data/prepare/prepare.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { UserError } from '../util/errors.js';

/** Columns and filters for preparing a log file; files and place are known. */
export type PrepareChoices = Omit<PrepareInput, 'files' | 'out'>;

export interface DataOptions {
  /** A store's folder, or a log file. */
  data: string;
  /** Where the store goes when `data` is a log file. */
  storeFolder: string;
  prepare?: PrepareChoices;
  onPrepare?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export async function openData({ data, storeFolder, ...options }: DataOptions): Promise<SequenceStore> {
  if (!existsSync(data)) {
    throw new UserError('no-data', `${data} does not exist`, 'Give a folder made by `turbogr prepare`, or a log file.');
  }
  if (statSync(data).isDirectory()) return SequenceStore.open(data);
  if (!existsSync(join(storeFolder, 'index.json'))) {
    const { onPrepare, signal } = options;
    await prepare(
      { ...options.prepare, files: [data], out: storeFolder },
      { ...(onPrepare && { onProgress: onPrepare }), ...(signal && { signal }) },
    );
  }
  return SequenceStore.open(storeFolder);
}
