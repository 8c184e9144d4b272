// Checks after reading whether columns that looked like whole numbers in the sample have other values. Then the type was
// wrong, and the log is read again, so that a value means the same everywhere in the log.

import type { LogColumns, Surprises } from './columns.js';
import { type Engine, count } from './engine.js';
import { DECIMAL } from './sample-columns.js';
import { type Source, UNREADABLE } from './source.js';
import { EVENTS, ofEvent } from './stage.js';

/** Undefined when every assumption held. */
export async function findSurprises(
  engine: Engine,
  sources: readonly Source[],
  { columns, known }: { columns: LogColumns; known: Surprises },
): Promise<Surprises | undefined> {
  const assumed = [...columns.assumed];
  if (assumed.length === 0) return undefined;
  const strays = assumed.map(([field], f) => `count(*) FILTER (${ofEvent(field)} = ${UNREADABLE}) AS n${f}`);
  const row = await engine.row(`SELECT ${strays.join(', ')} FROM ${EVENTS}`);
  const wrong = assumed.filter((_, f) => count(row, `n${f}`) > 0);
  const text = new Map(known.text);
  let { timeDigits } = known;
  for (const [field, column] of wrong) {
    if (field === 'time') timeDigits = await digitsOf(engine, sources, column);
    else text.set(field, await strayOf(engine, sources, column));
  }
  const found = text.size > known.text.size || timeDigits !== known.timeDigits;
  return found ? { text, timeDigits } : undefined;
}

/** Maximum decimals of a time; undefined if a value is not a number at all. */
async function digitsOf(engine: Engine, sources: readonly Source[], column: string): Promise<number | undefined> {
  let digits: number | undefined;
  for (const source of sources) {
    const number = `TRY_CAST(${source.value(column, 'VARCHAR')} AS ${DECIMAL})`;
    const row = await engine.row(
      `SELECT count(*) AS n, max(length(rtrim(split_part(${number}::VARCHAR, '.', 2), '0'))) AS digits
       FROM ${source.from(new Map())} WHERE ${source.integer(column)} = ${UNREADABLE} AND ${number} IS NOT NULL`,
    );
    if (count(row, 'n') > 0) digits = Math.max(digits ?? 0, count(row, 'digits'));
  }
  return digits;
}

async function strayOf(engine: Engine, sources: readonly Source[], column: string): Promise<string> {
  for (const source of sources) {
    const [row] = await engine.rows(
      `SELECT ${source.value(column, 'VARCHAR')} AS stray FROM ${source.from(new Map())}
       WHERE ${source.integer(column)} = ${UNREADABLE} LIMIT 1`,
    );
    if (row) return String(row['stray']);
  }
  return '';
}
