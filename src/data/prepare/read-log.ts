// Reads the log: opens the files, determines their columns, stages every row, removes bad ones. Whatever can be refused
// without reading is refused first.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UserError } from '../../util/errors.js';
import { type SplitRule, parseSplit } from '../store/split.js';
import { type LogColumns, NO_SURPRISES, resolveColumns } from './columns.js';
import { type Engine, literal } from './engine.js';
import { explainFailure } from './failures.js';
import { type FilterPlan, planFilters } from './filters.js';
import type { PrepareOptions } from './options.js';
import { type Source, openSource, unreadable } from './source.js';
import { type Staged, settle, stage } from './stage.js';
import { findSurprises } from './surprises.js';
import { parseTime } from './times.js';

export interface ReadOptions {
  /** The future store's folder. */
  readonly folder: string;
  /** Read every column of a CSV, used or not: see isReaderBug. */
  readonly wholeRows: boolean;
  readonly onFile: (file: string) => void;
}

export interface ReadLog {
  readonly columns: LogColumns;
  readonly rule: SplitRule;
  readonly filters: FilterPlan;
  readonly staged: Staged;
}

/**
 * DuckDB 1.5 fails on non-UTF-8 text in a column if an earlier column is not read, instead of rejecting the row. The database
 * is lost then; the caller starts over with `wholeRows`, with which the row is rejected properly.
 */
export function isReaderBug(error: unknown): boolean {
  return error instanceof Error && /Attempted to access index \d+ within vector/.test(error.message);
}

/** DuckDB errors about the content of a file, not about our SQL. */
const OF_CONTENT = /^(Invalid|Invalid Input|IO|Conversion|Serialization|Out of Range|INTERNAL) Error: /;

export async function readLog(engine: Engine, options: PrepareOptions, read: ReadOptions): Promise<ReadLog> {
  const sources = await openSources(engine, options, read.wholeRows);
  let file = sources[0]?.file ?? '';
  const onFile = (next: string) => {
    file = next;
    read.onFile(next);
  };
  return await readSources(engine, sources, { options, folder: read.folder, onFile }).catch((error: unknown) => {
    const known = error instanceof UserError || isReaderBug(error) || explainFailure(error, read.folder) !== undefined;
    throw !known && error instanceof Error && OF_CONTENT.test(error.message) ? unreadable(file, error) : error;
  });
}

interface ReadingOptions {
  readonly options: PrepareOptions;
  readonly folder: string;
  readonly onFile: (file: string) => void;
}

async function readSources(
  engine: Engine,
  sources: readonly Source[],
  { options, folder, onFile }: ReadingOptions,
): Promise<ReadLog> {
  const first = sources[0];
  if (!first) throw new UserError('no-file', 'no input file', 'Name at least one file.');
  let surprises = NO_SURPRISES;
  let resolved = await resolveColumns(engine, first, { options, surprises });
  // Everything that can be refused is refused here, before the long work.
  planFilters(resolved, options);
  planSplit(resolved, options);
  for (const file of [options.itemsFile, ...options.features.flatMap(table => table.files)]) {
    if (file !== undefined && !existsSync(file))
      throw new UserError('no-file', `${file} does not exist`, 'Check the path.');
  }
  const rejects = join(folder, 'rejects.csv');
  let result = await stage(engine, sources, resolved, { rejects, onFile });
  for (;;) {
    const more = await findSurprises(engine, sources, { columns: resolved, known: surprises });
    if (!more) break;
    surprises = more;
    resolved = await resolveColumns(engine, first, { options, surprises });
    result = await stage(engine, sources, resolved, { rejects, onFile });
  }
  const keepRejects = `${resolve(options.out)}.rejects.csv`;
  await settle(engine, result, { sources, columns: resolved, rejects, keepRejects, maxBad: options.maxBad });
  return {
    columns: resolved,
    rule: planSplit(resolved, options),
    filters: planFilters(resolved, options),
    staged: result,
  };
}

async function openSources(engine: Engine, options: PrepareOptions, wholeRows: boolean): Promise<Source[]> {
  const sources: Source[] = [];
  for (const file of await expandGlobs(engine, options.files)) {
    const source = await openSource(engine, file, { format: options.format, csv: options.csv, wholeRows });
    const first = sources[0];
    if (first && first.format === 'csv' && source.columns.join() !== first.columns.join()) {
      throw new UserError(
        'columns-differ',
        `${file} has the columns ${source.columns.join(', ')}; ${first.file} has ${first.columns.join(', ')}`,
        'Prepare files of one layout together.',
      );
    }
    sources.push(source);
  }
  return sources;
}

function planSplit({ timeKind }: LogColumns, { split }: PrepareOptions): SplitRule {
  const rule = parseSplit(split, text => parseTime(text, timeKind));
  if (rule.kind !== 'time' || timeKind !== 'order') return rule;
  throw new UserError(
    'no-times',
    'a split by time needs times, and the log has only an order',
    'Use --split leave-one-out.',
  );
}

/** Expands names with * or ? to the matching files, in order of their names. */
async function expandGlobs(engine: Engine, files: readonly string[]): Promise<string[]> {
  const expanded: string[] = [];
  for (const file of files) {
    if (existsSync(file) || !/[*?[]/.test(file)) {
      expanded.push(file);
      continue;
    }
    const fits = await engine.rows(`SELECT file FROM glob(${literal(file)}) ORDER BY file`);
    if (fits.length === 0) throw new UserError('no-file', `no file matches '${file}'`, 'Check the path.');
    expanded.push(...fits.map(row => String(row['file'])));
  }
  return expanded;
}
