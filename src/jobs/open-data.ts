// The data of a run: a prepared store, or a log that is first prepared into the run's folder. An existing run keeps its store; if
// the log has changed since, the run is refused with the available options.

import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Progress } from '../data/prepare/options.js';
import { prepare } from '../data/prepare/prepare.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { recoverStore } from '../data/store/store-place.js';
import { type LogInput, RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { expandFiles, inputChanges, type PrepareChoices, recordInput } from './log-input.js';

export interface DataOptions {
  /** A store's folder, or the files of a log. */
  data: string | readonly string[];
  prepare?: PrepareChoices;
  /** Prepare the log again and restart the run, although the folder holds a run on it. */
  reprepare?: boolean;
  onPrepare?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export interface RunData {
  source: SequenceStore;
  /** What the store was prepared from, if the run prepared it. */
  input?: LogInput;
}

/** Checks that are possible before the run's folder is created. */
export async function findData({
  data,
  prepare: choices,
}: DataOptions): Promise<{ store: string } | { files: string[] }> {
  const names = typeof data === 'string' ? [data] : data;
  const [first] = names;
  if (first !== undefined) recoverStore(first);
  if (first !== undefined && names.length === 1 && existsSync(first) && statSync(first).isDirectory()) {
    refuseRun(first);
    refuseChoices(first, choices);
    return { store: first };
  }
  const files = await expandFiles(names);
  for (const file of files) {
    if (!existsSync(file)) {
      const remedy = 'Give a folder made by `npx turbogr prepare`, or log files.';
      throw new UserError('no-data', `${file} does not exist`, remedy);
    }
  }
  return { files };
}

/** The folder of a run is easily mistaken for its data. */
function refuseRun(folder: string): void {
  if (!RunFolder.exists(folder)) return;
  throw new UserError(
    'is-a-run',
    `${folder} is a run, not a store or a log`,
    `To continue it: npx turbogr resume ${folder}. To train another run on its data: npx turbogr train ${join(folder, 'store')}`,
  );
}

/** Columns and filters would be ignored for a prepared store. */
function refuseChoices(store: string, choices: PrepareChoices = {}): void {
  const given = Object.entries(choices).filter(([, value]) => value !== undefined);
  if (given.length === 0) return;
  const names = given.map(([key]) => `--${key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`);
  throw new UserError(
    'already-prepared',
    `${store} is a prepared store, so ${names.join(', ')} would have no effect`,
    'Give the log instead, or leave the flags out.',
  );
}

/** The data of the run in the folder `run`, which this process has locked. */
export async function openData(
  options: DataOptions,
  found: { store: string } | { files: string[] },
  run: string,
): Promise<RunData> {
  if ('store' in found) return { source: SequenceStore.open(found.store) };
  const { files } = found;
  const choices = options.prepare ?? {};
  if (options.reprepare) forgetRun(run);
  if (RunFolder.exists(run)) {
    const known = RunFolder.open(run);
    const { input } = known.description;
    if (!input) throw changed(run, files, ['the run was trained on a prepared store']);
    const changes = await inputChanges(known, input, { files, choices });
    if (changes.length > 0) throw changed(run, files, changes);
    return { source: SequenceStore.open(known.find(known.description.store)), input };
  }
  const { onPrepare, signal } = options;
  const out = join(run, 'store');
  const { input } = await recordInput({ run, files, choices }, () =>
    prepare(
      { ...choices, files, out, force: true },
      { ...(onPrepare && { onProgress: onPrepare }), ...(signal && { signal }) },
    ),
  );
  return { source: SequenceStore.open(out), input };
}

function changed(run: string, files: readonly string[], changes: readonly string[]): UserError {
  return new UserError(
    'input-changed',
    `${run} was trained on other data than ${files.join(', ')}: ${changes.join('; ')}`,
    `Train a new run: --run <folder>. Or prepare the log again and restart this run, losing its weights: --reprepare. ` +
      `Or continue from its weights with newer events, as a new run: npx turbogr update ${run} ${files.join(' ')}. ` +
      `Or continue with the original data: npx turbogr resume ${run}`,
  );
}

/** `run.json` is removed first: a folder without it is not a run. */
function forgetRun(run: string): void {
  for (const name of ['run.json', 'checkpoints', 'events.jsonl', 'report.json', 'priors.json', 'ranks.safetensors']) {
    rmSync(join(run, name), { recursive: true, force: true });
  }
}
