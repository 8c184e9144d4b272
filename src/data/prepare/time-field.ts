// The time column as exact integers: its format, its unit, and the SQL that reads it. No time passes through a floating-point
// number. Whole numbers are kept; fractions and dates are stored in the coarsest unit that represents the sample's digits.

import { UserError } from '../../util/errors.js';
import type { TimeKind } from '../store/store-index.js';
import { guessFormat } from './date-formats.js';
import { type Engine, literal } from './engine.js';
import type { PrepareOptions } from './options.js';
import { type ColumnShape, DECIMAL } from './sample-columns.js';
import { type Source, UNREADABLE } from './source.js';

export interface TimeReading {
  readonly kind: TimeKind;
  /** How the column is interpreted, for the report; empty for whole numbers. */
  readonly note: string;
  /** True if the column is assumed to be whole numbers because the sample has no others. */
  readonly whole: boolean;
  /** BIGINT; null if missing, UNREADABLE if not a time. */
  expression(source: Source): string;
}

export interface TimeColumn {
  readonly name: string;
  readonly shape: ColumnShape;
  /** Decimals found beyond the sample; undefined: none. */
  readonly moreDigits: number | undefined;
}

const UNITS = ['s', 'ms', 'us', 'ns'] as const;
const LARGEST = 2n ** 63n - 1n;

export async function readTimes(
  engine: Engine,
  source: Source,
  { column, options }: { column: TimeColumn; options: PrepareOptions },
): Promise<TimeReading> {
  const { name, shape, moreDigits } = column;
  if (options.timeFormat !== undefined) return formatted(name, await checkedFormat(engine, options.timeFormat));
  if (shape.numbers < shape.dates) return isoDates(name, shape.dateDigits);
  if (shape.numbers * 2 < shape.values) {
    const guess = await guessFormat(engine, source, { name, shape });
    if (guess && guess.reads > shape.dates && guess.reads * 2 >= shape.values) return formatted(name, guess.format);
    throw unreadableTimes(name, shape);
  }
  const kind = options.timeUnit ?? guessTimeKind(name, shape.median);
  if (moreDigits === undefined && shape.digits === 0 && shape.integers === shape.numbers) {
    return { kind, note: '', whole: true, expression: from => from.integer(name) };
  }
  return decimals(name, kind, Math.max(moreDigits ?? 0, shape.digits));
}

/** By name, otherwise by magnitude: 1e8 s is 1973, 1e11 ms the same year, and so on; smaller numbers are an order. */
export function guessTimeKind(name: string, median: number): TimeKind {
  if (/order|rank|position|index|seq/i.test(name)) return 'order';
  if (median >= 1e17) return 'ns';
  if (median >= 1e14) return 'us';
  if (median >= 1e11) return 'ms';
  return median >= 1e8 ? 's' : 'order';
}

/** Three decimals are one unit finer. An order has no unit and takes any number of decimals. */
function decimals(name: string, kind: TimeKind, digits: number): TimeReading {
  const unit = UNITS.findIndex(known => known === kind);
  const finer = unit < 0 ? 0 : Math.min(UNITS.length - 1 - unit, Math.ceil(digits / 3));
  const scale = unit < 0 ? 10 ** digits : 1000 ** finer;
  const stored = UNITS[unit + finer] ?? kind;
  const most = LARGEST / BigInt(scale);
  const value = (from: Source): string => `TRY_CAST(${from.value(name, 'VARCHAR')} AS ${DECIMAL})`;
  return {
    kind: unit < 0 ? kind : stored,
    note: stored === kind ? '' : `times are fractions of ${kind}, kept in ${stored}`,
    whole: false,
    expression: from =>
      orUnreadable(
        from,
        name,
        `CASE WHEN ${value(from)} < 0 THEN -1
        WHEN ${value(from)} < ${most} THEN CAST(floor(${value(from)} * ${scale}) AS BIGINT)
        WHEN ${value(from)} IS NOT NULL THEN ${LARGEST} END`,
      ),
  };
}

function isoDates(name: string, digits: number): TimeReading {
  const kind = digits <= 3 ? 'ms' : digits <= 6 ? 'us' : 'ns';
  // Cast here and not by the CSV reader, which would ignore an offset such as +02:00.
  const type = kind === 'ns' ? 'TIMESTAMP_NS' : 'TIMESTAMPTZ';
  return dates({ name, kind, note: '', moment: value => `TRY_CAST(${value} AS ${type})` });
}

function formatted(name: string, format: string): TimeReading {
  const kind = format.includes('%n') ? 'ns' : format.includes('%f') ? 'us' : 'ms';
  const note = `dates are read as ${format}`;
  return dates({ name, kind, note, moment: value => `try_strptime(${value}, ${literal(format)})` });
}

interface DateReading {
  readonly name: string;
  readonly kind: 'ms' | 'us' | 'ns';
  readonly note: string;
  readonly moment: (value: string) => string;
}

function dates({ name, kind, note, moment }: DateReading): TimeReading {
  const expression = (from: Source): string => {
    const at = moment(from.value(name, 'VARCHAR'));
    return orUnreadable(from, name, `CASE WHEN isfinite(${at}) THEN epoch_${kind}(${at}) END`);
  };
  return { kind, note, whole: false, expression };
}

function orUnreadable(from: Source, name: string, time: string): string {
  return `coalesce(${time}, CASE WHEN ${from.value(name, 'VARCHAR')} <> '' THEN ${UNREADABLE} END)`;
}

async function checkedFormat(engine: Engine, format: string): Promise<string> {
  await engine.row(`SELECT try_strptime('', ${literal(format)}) AS moment`).catch((cause: unknown) => {
    throw new UserError(
      'bad-time-format',
      `'${format}' is not a time format`,
      "Write it as for strptime, such as '%d/%m/%Y %H:%M:%S'.",
      { cause },
    );
  });
  return format;
}

function unreadableTimes(name: string, { examples, values }: ColumnShape): UserError {
  return new UserError(
    'unreadable-times',
    values === 0
      ? `the time column '${name}' is empty`
      : `the times in '${name}' are in no known format: ${examples.join(', ')}`,
    values === 0
      ? 'Name another column with --time, or --time none if the rows are in order.'
      : "Give their format, such as --time-format '%d/%m/%Y %H:%M:%S', or name another column with --time.",
  );
}
