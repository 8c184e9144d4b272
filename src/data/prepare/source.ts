// An input file as SQL: the source of its rows, and typed column expressions. CSV is typed by the reader, which rejects bad
// lines with a reason; Parquet and JSON lines are cast row by row, null if the cast fails.

import { closeSync, createReadStream, existsSync, openSync, readSync, statSync } from 'node:fs';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { UserError } from '../../util/errors.js';
import { type Engine, identifier, literal } from './engine.js';
import type { CsvDialect } from './options.js';

/** Marks a value in an integer column that is present but not valid. */
export const UNREADABLE = '(-9223372036854775808)';

export interface Source {
  readonly file: string;
  readonly format: 'csv' | 'json' | 'parquet';
  readonly columns: readonly string[];
  /** Lines before the first record. */
  readonly headerLines: number;
  /** FROM clause for reading columns with the given SQL types. */
  from(types: ReadonlyMap<string, string>): string;
  /** A column as an expression of that type. */
  value(column: string, type: string): string;
  /** A column as a BIGINT if it is a plain whole number; null if missing, otherwise UNREADABLE. */
  integer(column: string): string;
  /** SQL condition for rows that cannot be parsed at all. Undefined: the reader itself rejects such rows. */
  readonly malformed: string | undefined;
}

export interface SourceOptions {
  readonly format: 'csv' | 'json' | 'parquet' | undefined;
  readonly csv: CsvDialect;
  /** Read every column of a CSV, used or not. */
  readonly wholeRows: boolean;
}

const REJECTS = 'ignore_errors = true, store_rejects = true';

export async function openSource(
  engine: Engine,
  file: string,
  { format, csv, wholeRows }: SourceOptions,
): Promise<Source> {
  if (!existsSync(file)) throw new UserError('no-file', `${file} does not exist`, 'Check the path.');
  if (statSync(file).isDirectory()) {
    throw new UserError(
      'is-a-folder',
      `${file} is a folder`,
      `Give its files, such as '${file}/*.csv', or a --preset.`,
    );
  }
  if (!statSync(file).isFile()) {
    const remedy = 'A log is read more than once: write it to a file first.';
    throw new UserError('no-regular-file', `${file} is a pipe or a device`, remedy);
  }
  if (statSync(file).size === 0) throw new UserError('empty-file', `${file} is empty`, 'Give a file with rows.');
  switch (format ?? guessFormat(file)) {
    case 'parquet':
      return parquetSource(engine, file);
    case 'json':
      return jsonSource(engine, file);
    default:
      return csvSource(engine, file, { dialect: csv, wholeRows });
  }
}

function guessFormat(file: string): 'csv' | 'json' | 'parquet' {
  const name = file.replace(/\.(gz|zst)$/i, '');
  if (/\.(parquet|pq)$/i.test(name)) return 'parquet';
  if (/\.(json|jsonl|ndjson)$/i.test(name)) return 'json';
  return 'csv';
}

async function csvSource(
  engine: Engine,
  file: string,
  { dialect, wholeRows }: { dialect: CsvDialect; wholeRows: boolean },
): Promise<Source> {
  if (dialect.encoding === undefined && looksLikeUtf16(file)) {
    throw new UserError('utf-16', `${file} looks like UTF-16`, 'Add --encoding utf-16.');
  }
  const given = [
    ...(dialect.delimiter === undefined ? [] : [`delim = ${literal(dialect.delimiter)}`]),
    ...(dialect.quote === '' ? ["quote = ''"] : []),
    ...(dialect.encoding === undefined ? [] : [`encoding = ${literal(dialect.encoding)}`]),
  ];
  const sniffed = await engine
    .row(
      `SELECT Delimiter AS delimiter, HasHeader AS header, [c.name FOR c IN Columns] AS names
       FROM sniff_csv(${[literal(file), 'ignore_errors = true', ...given].join(', ')})`,
    )
    .catch((cause: unknown) => {
      throw unreadable(file, cause);
    });
  const delimiter = dialect.delimiter ?? String(sniffed['delimiter']);
  const header = dialect.header ?? (dialect.names ? false : sniffed['header'] === true);
  const columns = dialect.names ?? parseNames(sniffed['names']);
  const quote = literal(dialect.quote ?? '"');
  return {
    file,
    format: 'csv',
    columns,
    headerLines: header ? 1 : 0,
    malformed: undefined,
    value: column => identifier(column),
    integer: column => plainInteger(identifier(column)),
    from: types => {
      const typed = columns.map(name => `${literal(name)}: ${literal(types.get(name) ?? 'VARCHAR')}`).join(', ');
      const rows = `read_csv(${literal(file)}, auto_detect = false, header = ${header}, delim = ${literal(delimiter)},
        quote = ${quote}, escape = ${quote}, encoding = ${literal(dialect.encoding ?? 'utf-8')}, columns = {${typed}}, ${REJECTS})`;
      // Always true, and needs them all.
      return wholeRows ? `(SELECT * FROM ${rows} WHERE hash(${columns.map(identifier).join(', ')}) IS NOT NULL)` : rows;
    },
  };
}

/** Detected by a byte order mark, or because every second byte at its beginning is 0. */
function looksLikeUtf16(file: string): boolean {
  const head = Buffer.alloc(512);
  const fd = openSync(file, 'r');
  const length = readSync(fd, head);
  closeSync(fd);
  const mark = head.toString('hex', 0, 2);
  const zeros = [0, 1].map(odd => head.subarray(0, length).filter((byte, i) => i % 2 === odd && byte === 0).length);
  return length >= 2 && (mark === 'fffe' || mark === 'feff' || Math.max(...zeros) > 0.4 * length);
}

function parseNames(json: unknown): string[] {
  const names: unknown = JSON.parse(String(json));
  return Array.isArray(names) ? names.map(String) : [];
}

/** Each line is read as one text field, so that a broken line is one bad row with its number instead of a failure. */
async function jsonSource(engine: Engine, file: string): Promise<Source> {
  const lines = `read_csv(${literal(file)}, auto_detect = false, header = false, delim = '\x01', quote = '', escape = '',
    columns = {'line': 'VARCHAR'}, ${REJECTS})`;
  const from = `(SELECT CASE WHEN json_valid(line) THEN line END AS line FROM ${lines} WHERE trim(line) <> '')`;
  const keys = await engine
    .rows(
      `SELECT DISTINCT unnest(json_keys(line)) AS name FROM (SELECT line FROM ${from} WHERE line IS NOT NULL LIMIT 1000) ORDER BY name`,
    )
    .catch((cause: unknown) => {
      throw unreadable(file, cause);
    });
  if (keys.length === 0) {
    throw new UserError(
      'no-json-lines',
      `${file} has no JSON object in its first lines`,
      'JSON input is one object per line.',
    );
  }
  const text = (column: string): string => {
    const value = `json_extract_string(line, ${literal(`$."${column.replaceAll('"', '\\"')}"`)})`;
    return exactNumber(value, column);
  };
  return {
    file,
    format: 'json',
    columns: keys.map(row => String(row['name'])),
    headerLines: 0,
    malformed: 'line IS NULL',
    value: (column, type) => `TRY_CAST(${text(column)} AS ${type})`,
    integer: column => plainInteger(text(column)),
    from: () => from,
  };
}

/**
 * DuckDB reads JSON numbers with fractions as doubles, which lose nanoseconds. If the line has a number under that name that
 * rounds to the same double, its text is used.
 */
function exactNumber(value: string, column: string): string {
  const key = JSON.stringify(column).replaceAll(
    /[^\w" ]/g,
    character => `\\x{${character.codePointAt(0)?.toString(16)}}`,
  );
  const number = String.raw`${key}\s*:\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)`;
  // Nested objects may use the name too, so all numbers under it are checked.
  const same = `lambda written: TRY_CAST(written AS DOUBLE) = TRY_CAST(${value} AS DOUBLE)`;
  const written = `list_filter(regexp_extract_all(line, ${literal(number)}, 1), ${same})[1]`;
  return `CASE WHEN contains(${value}, '.') THEN coalesce(${written}, ${value}) ELSE ${value} END`;
}

const INTEGER_TYPE = /^U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$/;

async function parquetSource(engine: Engine, file: string): Promise<Source> {
  const from = `read_parquet(${literal(file)})`;
  const described = await engine.rows(`DESCRIBE SELECT * FROM ${from}`).catch((cause: unknown) => {
    throw unreadable(file, cause);
  });
  const types = new Map(described.map(row => [String(row['column_name']), String(row['column_type'])]));
  return {
    file,
    format: 'parquet',
    columns: described.map(row => String(row['column_name'])),
    headerLines: 0,
    malformed: undefined,
    value: (column, type) => `TRY_CAST(${identifier(column)} AS ${type})`,
    integer: column =>
      INTEGER_TYPE.test(types.get(column) ?? '')
        ? `CASE WHEN ${identifier(column)} IS NOT NULL THEN coalesce(TRY_CAST(${identifier(column)} AS BIGINT), ${UNREADABLE}) END`
        : plainInteger(`${identifier(column)}::VARCHAR`),
    from: () => from,
  };
}

export function unreadable(file: string, cause: unknown): UserError {
  const first = (cause instanceof Error ? cause.message : String(cause)).split('\n')[0] ?? '';
  return new UserError(
    'unreadable-file',
    `${file} cannot be read: ${first}`,
    'Check the format, or name it with --format and --delimiter.',
    {
      cause,
    },
  );
}

/** Text that round-trips through an integer cast: not 7.7, 1e1, 007, +7 or text with spaces. */
export function plainInteger(text: string): string {
  const number = `TRY_CAST(${text} AS BIGINT)`;
  return `CASE WHEN ${number}::VARCHAR = ${text} THEN ${number} WHEN ${text} <> '' THEN ${UNREADABLE} END`;
}

/**
 * DuckDB takes the end of a truncated gzip file for the end of the log, so the file is also decompressed to its end,
 * concurrently. A gzip error takes precedence over other errors of the work.
 */
export async function withGzipCheck(file: string, work: () => Promise<void>): Promise<void> {
  const checked = checkGzip(file);
  checked.catch(() => undefined); // awaited below
  try {
    await work();
  } finally {
    await checked;
  }
}

async function checkGzip(file: string): Promise<void> {
  if (!/\.gz$/i.test(file)) return;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done(), highWaterMark: 1 << 20 });
  try {
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), createGunzip({ chunkSize: 1 << 18 }), nowhere);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UserError('damaged-gzip', `${file} is cut off or damaged: ${why}`, 'Download or copy it again.', {
      cause,
    });
  }
}
