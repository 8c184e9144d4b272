// Records what a run was prepared from: files, their state, and options. The same command must mean the same data: a log that
// has grown, a replaced file or another column is reported.

import { createReadStream, existsSync, statSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { PREPARE_OPTIONS, type PrepareInput } from '../data/prepare/options.js';
import { type LogInput, placeOf, type RunFolder } from '../train/run-folder.js';
import { UserError } from '../util/errors.js';
import { canonicalJson } from '../util/hash.js';
import { isRegularFile } from '../util/regular-file.js';

/** Columns and filters for preparing a log, without files and output. */
export type PrepareChoices = Omit<PrepareInput, 'files' | 'out' | 'force'>;

/** Options that do not affect the store, and the items file, which is compared by content. */
const INDECISIVE = ['files', 'itemsFile', 'out', 'force', 'memory', 'threads', 'maxBad'];
/** Options with guessed defaults: giving the guessed name is not a change. */
const ROLES = ['user', 'item', 'time', 'action', 'rating'];

interface FileState {
  path: string;
  bytes: number;
  modified: number;
}

/** Expands names with * or ? to the matching files, in order of their names. */
export async function expandFiles(patterns: readonly string[]): Promise<string[]> {
  const isPattern = (name: string) => !existsSync(name) && /[*?[]/.test(name);
  if (!patterns.some(isPattern)) return [...patterns];
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const expanded: string[] = [];
  for (const pattern of patterns) {
    if (!isPattern(pattern)) {
      expanded.push(pattern);
      continue;
    }
    const found = await connection.runAndReadAll('SELECT file FROM glob($1) ORDER BY file', [pattern]);
    const files = found.getRowsJson().flatMap(([file]) => (typeof file === 'string' ? [file] : []));
    if (files.length === 0) throw new UserError('no-file', `no file matches '${pattern}'`, 'Check the path.');
    expanded.push(...files);
  }
  connection.closeSync();
  instance.closeSync();
  return expanded;
}

/** All files that determine the store: the log, and items and feature files. */
function inputFiles(files: readonly string[], { itemsFile, features = [] }: PrepareChoices): string[] {
  return [...files, ...(itemsFile === undefined ? [] : [itemsFile]), ...features.flatMap(table => table.files)];
}

/** Uses ctime: unlike mtime, tools cannot reset it after an edit. */
function stateOf(path: string): FileState {
  const { size, ctimeMs } = statSync(path);
  return { path, bytes: size, modified: ctimeMs };
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

function decisiveOptions(choices: PrepareChoices): Record<string, unknown> {
  const parsed = PREPARE_OPTIONS.parse({ ...choices, files: ['-'], out: '-' });
  return Object.fromEntries(
    Object.entries(parsed).filter(([key, value]) => !INDECISIVE.includes(key) && value !== undefined),
  );
}

/** Records the input while `work` prepares it; fails if a file changes meanwhile. */
export async function recordInput<T extends { columns: Readonly<Record<string, string>> }>(
  { run, files, choices }: { run: string; files: readonly string[]; choices: PrepareChoices },
  work: () => Promise<T>,
): Promise<{ input: LogInput; result: T }> {
  const options = decisiveOptions(choices);
  const before = inputFiles(files, choices).map(stateOf);
  // Non-regular files are refused by the work; reading a pipe here would consume it.
  const hashes = Promise.all(before.map(async ({ path }) => (isRegularFile(path) ? await hashFile(path) : '')));
  hashes.catch(() => undefined); // awaited after the work, whose own error comes first
  const result = await work();
  const sha256 = await hashes;
  for (const state of before) {
    const after = stateOf(state.path);
    if (after.bytes === state.bytes && after.modified === state.modified) continue;
    throw new UserError('input-changed', `${state.path} changed while it was being read`, 'Run the command again.');
  }
  const described = before.map(({ path, bytes, modified }, i) => ({
    place: placeOf(run, path),
    bytes,
    modified,
    sha256: sha256[i]!,
  }));
  return { input: { files: described, options, columns: { ...result.columns } }, result };
}

/** Differences between the input and what the run was prepared from; empty if none. */
export async function inputChanges(
  run: RunFolder,
  known: LogInput,
  now: { files: readonly string[]; choices: PrepareChoices },
): Promise<string[]> {
  const files = inputFiles(now.files, now.choices);
  const changes = optionChanges(known, decisiveOptions(now.choices));
  if (files.length !== known.files.length) {
    return [`${known.files.length} input files, now ${files.length}`, ...changes];
  }
  for (const [i, path] of files.entries()) {
    const { place, bytes, modified, sha256 } = known.files[i]!;
    const state = stateOf(path);
    const sameFile = placeOf(run.path, path).absolute === run.find(place);
    if (sameFile && state.bytes === bytes && state.modified === modified) continue;
    if (state.bytes !== bytes) changes.push(`${path} had ${bytes} bytes, now ${state.bytes}`);
    else if ((await hashFile(path)) !== sha256) changes.push(`${path} has other content (as large as before)`);
  }
  return changes;
}

function optionChanges(known: LogInput, options: Record<string, unknown>): string[] {
  const show = (value: unknown) =>
    value === undefined ? 'left out' : typeof value === 'string' ? value : canonicalJson(value);
  const keys = [...new Set([...Object.keys(known.options), ...Object.keys(options)])];
  return keys.flatMap(key => {
    const [before, after] = [known.options[key], options[key]];
    const guessedThen = ROLES.includes(key) && before === undefined ? known.columns[key] : undefined;
    if (show(before) === show(after) || (guessedThen !== undefined && after === guessedThen)) return [];
    return [`${key} ${guessedThen === undefined ? show(before) : `guessed as ${guessedThen}`}, now ${show(after)}`];
  });
}
