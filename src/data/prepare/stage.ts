// Reads all files, in the given order, into one staged table of typed columns, in input order (its rowid). Bad rows are counted,
// sampled and written to the rejects file with a reason.

import { closeSync, copyFileSync, openSync } from 'node:fs';
import { writeFully } from '../../util/atomic-file.js';
import { UserError } from '../../util/errors.js';
import { formatCount, formatShare } from '../../util/terminal.js';
import type { TimeKind } from '../store/store-index.js';
import { badRowText } from './bad-row-text.js';
import type { LogColumns, Field } from './columns.js';
import { type Engine, type Row, count, literal } from './engine.js';
import type { BadRow, PrepareReport } from './options.js';
import { type Source, UNREADABLE, withGzipCheck } from './source.js';

/**
 * The staged table: one struct `event` with user_key, item_key, time?, action?, x0.. for the extra columns. DuckDB maintains a
 * sketch of distinct values for plain columns, which takes 7 % of the reading time, but not for structs.
 */
export const EVENTS = 'events';

/** SQL for a field of a staged event. */
export function ofEvent(field: string): string {
  return `event.${field}`;
}

const YEAR_2100_S = 4_102_444_800;
const LATEST: Record<TimeKind, number> = {
  order: 2 ** 62,
  s: YEAR_2100_S,
  ms: YEAR_2100_S * 1e3,
  us: YEAR_2100_S * 1e6,
  ns: YEAR_2100_S * 1e9,
};
const SAMPLES_PER_REASON = 3;
/** DuckDB's name for it. */
const INVALID_ENCODING = 'invalid encoding';

export type Staged = Pick<PrepareReport, 'files' | 'rows' | 'bad'>;

/** Largest stored action code. */
const LARGEST_CODE = 2 ** 31 - 1;

export interface StageOptions {
  readonly rejects: string;
  readonly onFile: (file: string) => void;
}

/** Reads all files. Bad rows stay in the staged table until settle() removes them. */
export async function stage(
  engine: Engine,
  sources: readonly Source[],
  columns: LogColumns,
  { rejects, onFile }: StageOptions,
): Promise<Staged> {
  const fields = stagedFields(columns, sources);
  const rules = badRules(columns, sources);
  const labels = labelsOf(columns);
  const members = fields.map(({ name, sqlType }) => `${name} ${sqlType}`);
  await engine.run(`CREATE OR REPLACE TABLE ${EVENTS} (event STRUCT(${members.join(', ')}))`);
  const ledger = new BadRowLedger(rejects);
  const files: { file: string; rows: number; bad: number }[] = [];
  let staged = 0;
  try {
    for (const source of sources) {
      onFile(source.file);
      const before = ledger.rows;
      await withGzipCheck(source.file, () => stageFile(engine, source, { fields, readAs: columns.readAs }));
      const total = count(await engine.row(`SELECT count(*) AS n FROM ${EVENTS}`), 'n');
      const rejected = await recordRejects(engine, source, ledger);
      await recordBadRows(engine, source, { rules, labels, firstRow: staged, rejected, ledger });
      files.push({ file: source.file, rows: total - staged + rejected.records, bad: ledger.rows - before });
      staged = total;
    }
  } finally {
    ledger.close();
  }
  const rows = files.reduce((n, file) => n + file.rows, 0);
  const { rows: bad, reasons, samples } = ledger;
  return { files, rows, bad: { rows: bad, share: rows > 0 ? bad / rows : 0, reasons, samples } };
}

export interface SettleOptions {
  readonly sources: readonly Source[];
  readonly columns: LogColumns;
  readonly rejects: string;
  /** Where rejects are kept if there are too many and the store is abandoned. */
  readonly keepRejects: string;
  readonly maxBad: number;
}

/** Removes bad rows from the staged table, or fails if there are too many. */
export async function settle(engine: Engine, { rows, bad }: Staged, options: SettleOptions): Promise<void> {
  const { sources, columns, rejects, keepRejects, maxBad } = options;
  if (rows === 0) throw new UserError('no-rows', 'the input has no rows', 'Check the files and the header.');
  if (rows === bad.rows || bad.share > maxBad) {
    copyFileSync(rejects, keepRejects);
    throw tooManyBadRows(rows, bad, { maxBad, keepRejects });
  }
  if (bad.rows > 0) await engine.run(`DELETE FROM ${EVENTS} WHERE ${anyOf(badRules(columns, sources))}`);
}

interface StagedField {
  readonly name: string;
  readonly sqlType: string;
  readonly expression: (source: Source) => string;
}

/** Column names and types of the staged table, in order. */
function stagedFields(columns: LogColumns, sources: readonly Source[]): StagedField[] {
  const { user, item, time, action, extras } = columns;
  return [
    ...[user, item, time, action].filter(field => field !== undefined),
    ...extras.map(
      (field, x): StagedField => ({
        name: `x${x}`,
        sqlType: field.sqlType,
        expression: source => field.expression(source),
      }),
    ),
    ...(sources.some(mayBeMalformed) ? [MALFORMED] : []),
  ];
}

/** Readable names of the staged columns. */
function labelsOf({ user, item, extras }: LogColumns): Map<string, string> {
  return new Map([[user.name, 'user'], [item.name, 'item'], ...extras.map(({ name }, x) => [`x${x}`, name] as const)]);
}

const MALFORMED: StagedField = {
  name: 'malformed',
  sqlType: 'BOOLEAN',
  expression: source => source.malformed ?? 'false',
};

function mayBeMalformed({ malformed }: Source): boolean {
  return malformed !== undefined;
}

interface BadRule {
  /** SQL over the staged columns. */
  readonly when: string;
  readonly reason: string;
}

/** Reasons why a readable row is bad; the first that applies counts. */
function badRules({ user, item, time, timeKind, action }: LogColumns, sources: readonly Source[]): BadRule[] {
  const missing = ({ name }: Field, role: string): BadRule => ({
    when: `${ofEvent(name)} IS NULL`,
    reason: `${role} missing`,
  });
  const unreadable = ({ name, sqlType }: Field, reason: string): BadRule[] =>
    sqlType === 'BIGINT' ? [{ when: `${ofEvent(name)} = ${UNREADABLE}`, reason }] : [];
  return [
    ...(sources.some(mayBeMalformed) ? [{ when: ofEvent(MALFORMED.name), reason: 'malformed record' }] : []),
    missing(user, 'user'),
    ...unreadable(user, 'user is not a whole number'),
    missing(item, 'item'),
    ...unreadable(item, 'item is not a whole number'),
    ...(time
      ? [
          missing(time, 'time'),
          ...unreadable(time, 'unreadable time'),
          { when: `${ofEvent(time.name)} < 0`, reason: 'time is negative' },
          {
            when: `${ofEvent(time.name)} > ${LATEST[timeKind]}`,
            reason: timeKind === 'order' ? 'time is beyond 2^62' : 'time is after the year 2100',
          },
        ]
      : []),
    ...(action ? [missing(action, 'action')] : []),
    ...(action?.kind === 'code'
      ? [
          ...unreadable(action, 'action is not a whole number'),
          { when: `abs(${ofEvent(action.name)}) > ${LARGEST_CODE}`, reason: 'action is beyond 32 bits' },
        ]
      : []),
  ];
}

function anyOf(rules: readonly BadRule[]): string {
  return `(${rules.map(({ when }) => when).join(' OR ')})`;
}

async function stageFile(
  engine: Engine,
  source: Source,
  { fields, readAs }: { fields: readonly StagedField[]; readAs: LogColumns['readAs'] },
): Promise<void> {
  const members = fields.map(({ name, sqlType, expression }) => {
    const value = expression(source);
    return `${literal(name)}: ${sqlType === 'VARCHAR' ? `nullif(${value}, '')` : value}`;
  });
  await engine.run('DROP TABLE IF EXISTS reject_errors; DROP TABLE IF EXISTS reject_scans;');
  await engine.run(`INSERT INTO ${EVENTS} SELECT {${members.join(', ')}} FROM ${source.from(readAs)}`);
}

interface Rejected {
  readonly records: number;
  /** Line numbers, ascending. */
  readonly lines: readonly number[];
}

/** Lines that the CSV reader rejected. An unclosed quote swallows lines; each of them counts. */
async function recordRejects(engine: Engine, source: Source, ledger: BadRowLedger): Promise<Rejected> {
  if (source.format === 'parquet') return { records: 0, lines: [] };
  let records = 0;
  const lines: number[] = [];
  await engine.eachRow(
    `SELECT line, arg_min(lower(error_type::VARCHAR), byte_position) AS kind, arg_min(column_name, byte_position) AS name,
       first(csv_line) AS content, greatest(1, len(list_filter(string_split(content, chr(10)), l -> l <> ''))) AS records
     FROM reject_errors GROUP BY line ORDER BY line`,
    row => {
      const swallowed = count(row, 'records');
      const line = count(row, 'line');
      ledger.add({ file: source.file, line, reason: rejectReason(row), content: String(row['content']) }, swallowed);
      for (let k = 0; k < swallowed; k++) lines.push(line + k);
      records += swallowed;
    },
  );
  return { records, lines };
}

/** DuckDB's error kinds in plain words. */
function rejectReason(row: Row): string {
  const kind = String(row['kind']);
  if (kind === 'cast') return `unreadable ${String(row['name'])}`;
  return kind === 'unquoted value' ? 'unclosed quote' : kind;
}

/** Staged rows that violate a rule. Their line is their position among the staged rows plus the rejected lines before it. */
async function recordBadRows(
  engine: Engine,
  source: Source,
  at: {
    rules: readonly BadRule[];
    labels: ReadonlyMap<string, string>;
    firstRow: number;
    rejected: Rejected;
    ledger: BadRowLedger;
  },
): Promise<void> {
  const first = `CASE ${at.rules.map(({ when }, r) => `WHEN ${when} THEN ${r}`).join(' ')} END`;
  let before = 0;
  await engine.eachRow(
    `SELECT rowid AS row, ${first} AS rule, event.* FROM ${EVENTS}
     WHERE rowid >= ${at.firstRow} AND ${anyOf(at.rules)} ORDER BY rowid`,
    ({ row, rule, ...values }) => {
      let line = Number(row) - at.firstRow + 1 + source.headerLines + before;
      while (before < at.rejected.lines.length && (at.rejected.lines[before] ?? 0) <= line) {
        before++;
        line++;
      }
      const shown = Object.entries(values).filter(([name]) => name !== MALFORMED.name);
      const content = shown.map(([name, value]) => {
        const label = at.labels.get(name) ?? name;
        return `${label}=${`(${value})` === UNREADABLE ? '?' : (value ?? '')}`;
      });
      const reason = at.rules[Number(rule)]?.reason ?? 'bad';
      at.ledger.add({ file: source.file, line, reason, content: content.join(' ') });
    },
  );
}

class BadRowLedger {
  rows = 0;
  readonly reasons: Record<string, number> = {};
  readonly samples: BadRow[] = [];
  private readonly fd: number;

  constructor(path: string) {
    this.fd = openSync(path, 'w');
    writeFully(this.fd, Buffer.from('file,line,reason,content\n'));
  }

  add(row: BadRow, records = 1): void {
    const seen = this.reasons[row.reason] ?? 0;
    if (seen < SAMPLES_PER_REASON) this.samples.push(row);
    this.reasons[row.reason] = seen + records;
    this.rows += records;
    const cells = [row.file, String(row.line), row.reason, row.content].map(cell => `"${cell.replaceAll('"', '""')}"`);
    writeFully(this.fd, Buffer.from(`${cells.join(',')}\n`));
  }

  close(): void {
    closeSync(this.fd);
  }
}

function tooManyBadRows(
  rows: number,
  bad: PrepareReport['bad'],
  { maxBad, keepRejects }: { maxBad: number; keepRejects: string },
): UserError {
  const reasons = Object.entries(bad.reasons).map(([reason, n]) => `${reason}: ${formatCount(n)}`);
  const samples = bad.samples.slice(0, 5).map(row => `\n    ${badRowText(row)}`);
  const remedy =
    (bad.reasons[INVALID_ENCODING] ?? 0) * 2 > bad.rows
      ? 'The text is not UTF-8: add --encoding latin-1 if it comes from an older Windows or European system.'
      : bad.rows === rows
        ? 'No row is left: check the column names, the delimiter and the header.'
        : `At most ${formatShare(maxBad)} may be bad: fix the file, name the columns, or raise --max-bad.`;
  return new UserError(
    'too-many-bad-rows',
    `${formatCount(bad.rows)} of ${formatCount(rows)} rows are bad (${formatShare(bad.share)}): ${reasons.join(', ')}${samples.join('')}`,
    `${remedy} All of them are in ${keepRejects}.`,
  );
}
