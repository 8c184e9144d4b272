// Statistics of a log's columns in its first rows: how many values are whole numbers, numbers, dates.

import { type Engine, count, identifier } from './engine.js';
import type { Source } from './source.js';

const SAMPLE_ROWS = 20_000;
/** Maximum decimals that are distinguished: nanoseconds. */
export const MAX_DIGITS = 9;
export const DECIMAL = `DECIMAL(38, ${MAX_DIGITS})`;

export interface ColumnShape {
  readonly values: number;
  /** Plain integers: no plus sign, no leading zeros, no exponent, at most 64 bits. */
  readonly integers: number;
  readonly numbers: number;
  /** Maximum decimals of a number. */
  readonly digits: number;
  readonly median: number;
  readonly largest: number;
  /** ISO 8601 dates, with or without time and offset. */
  readonly dates: number;
  /** Maximum digits of their fractional seconds. */
  readonly dateDigits: number;
  /** A few different values. */
  readonly examples: readonly string[];
}

const FACTS = {
  values: 'count(c)',
  integers: 'count(*) FILTER (TRY_CAST(c AS BIGINT)::VARCHAR = c)',
  numbers: `count(TRY_CAST(c AS ${DECIMAL}))`,
  digits: `max(length(rtrim(split_part(TRY_CAST(c AS ${DECIMAL})::VARCHAR, '.', 2), '0')))`,
  median: 'median(TRY_CAST(c AS DOUBLE)) FILTER (isfinite(TRY_CAST(c AS DOUBLE)))',
  largest: 'max(abs(TRY_CAST(c AS DOUBLE))) FILTER (isfinite(TRY_CAST(c AS DOUBLE)))',
  // Four-digit years only: the cast reads 12/01/21 as a day in January of the year 12.
  dates: String.raw`count(TRY_CAST(c AS TIMESTAMPTZ)) FILTER (regexp_matches(c, '^\s*\d{4}\D'))`,
  dateDigits: String.raw`max(length(rtrim(regexp_extract(c, ':\d+\.(\d+)', 1), '0')))`,
};

export async function sampleColumn(engine: Engine, source: Source, name: string): Promise<ColumnShape> {
  const column = `${source.value(name, 'VARCHAR')} AS c`;
  const rows = `(SELECT nullif(c, '') AS c FROM (SELECT ${column} FROM ${source.from(new Map())} LIMIT ${SAMPLE_ROWS}))`;
  const facts = Object.entries(FACTS).map(([fact, sql]) => `${sql} AS ${identifier(fact)}`);
  const row = await engine.row(`SELECT ${facts.join(', ')} FROM ${rows}`);
  const examples = await engine.rows(`SELECT c FROM ${rows} WHERE c IS NOT NULL LIMIT 3`);
  return {
    values: count(row, 'values'),
    integers: count(row, 'integers'),
    numbers: count(row, 'numbers'),
    digits: count(row, 'digits'),
    median: count(row, 'median'),
    largest: count(row, 'largest'),
    dates: count(row, 'dates'),
    dateDigits: count(row, 'dateDigits'),
    examples: examples.map(({ c }) => String(c)),
  };
}

/** How many values of the sample each format parses. */
export async function countFormats(
  engine: Engine,
  source: Source,
  { name, formats }: { name: string; formats: readonly string[] },
): Promise<number[]> {
  const rows = `(SELECT ${source.value(name, 'VARCHAR')} AS c FROM ${source.from(new Map())} LIMIT ${SAMPLE_ROWS})`;
  const counts = formats.map((format, f) => `count(try_strptime(c, '${format}')) AS f${f}`);
  const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${rows}`);
  return formats.map((_, f) => count(row, `f${f}`));
}
