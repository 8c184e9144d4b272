// Original ids to dense ids. Users get theirs in ascending order of the original, items by descending count and then
// ascending original, so an item's id is its popularity rank; neither depends on DuckDB's threads.
// Items are mapped while the sorted stream is written: by a table over the range of the originals when they are
// integers in a compact range, which is cheaper than a join of every event (60 M events: 13 s against 27 s), else by the join.

import type { DuckDBDataChunk } from '@duckdb/node-api';
import { UserError } from '../../util/errors.js';
import type { VocabularyEntry } from '../store/store-index.js';
import { VocabularyWriter } from '../store/vocabulary-writer.js';
import type { Field } from './columns.js';
import { type Engine, count, int32Column, int64Column } from './engine.js';
import { EVENTS } from './stage.js';

/** Tables of the staged database: value, n, and (users, and items to be joined) id. */
export const USERS = 'users';
export const ITEMS = 'items';
/** Dense order of the rows of each. */
export const USER_ORDER = 'value';
export const ITEM_ORDER = 'n DESC, value';
/** Originals that the items file lists, one per row, possibly twice. */
export const LISTED_ITEMS = 'listed_items';

/** 128 MB of Int32: KuaiRand-27K's 32,038,725 videos fit. */
const COMPACT_RANGE = 2 ** 25;
const MAX_IDS = 2 ** 31 - 1;

export interface Dictionary {
  readonly entry: VocabularyEntry;
  /** SHA-256 of the values in dense order. */
  readonly content: string;
  /** Present when events are to be mapped by table: dense id of original `first + index`. */
  readonly table: { readonly first: number; readonly dense: Int32Array } | undefined;
}

export async function userDictionary(engine: Engine, folder: string, user: Field): Promise<Dictionary> {
  await engine.run(
    `CREATE TABLE ${USERS} AS SELECT value, n, (row_number() OVER (ORDER BY ${USER_ORDER}) - 1)::INTEGER AS id
     FROM (SELECT ${user.name} AS value, count(*) AS n FROM ${EVENTS} GROUP BY value)`,
  );
  const writer = await openWriter(engine, { folder, field: user, from: USERS, of: 'user' });
  let next = 0;
  await engine.stream(`SELECT value, n FROM ${USERS} ORDER BY id`, chunk => {
    addChunk(writer, chunk, user);
    writer.addOrder(Int32Array.from({ length: chunk.rowCount }, () => next++));
  });
  return { ...writer.finish(), table: undefined };
}

/** `listed`: also give ids to the items in the table LISTED_ITEMS, after those that occur. */
export async function itemDictionary(
  engine: Engine,
  folder: string,
  { item, listed }: { item: Field; listed: boolean },
): Promise<Dictionary> {
  const occurring = `SELECT ${item.name} AS value, count(*) AS n FROM ${EVENTS} GROUP BY value`;
  const all = listed
    ? `SELECT value, max(n) AS n FROM (${occurring} UNION ALL SELECT value, 0 FROM ${LISTED_ITEMS}) GROUP BY value`
    : occurring;
  const range = item.sqlType === 'BIGINT' ? await integerRange(engine, item, listed) : undefined;
  return range ? tableDictionary(engine, folder, { item, all, range }) : joinDictionary(engine, folder, { item, all });
}

interface IntegerRange {
  readonly first: number;
  readonly length: number;
}

async function integerRange(engine: Engine, item: Field, listed: boolean): Promise<IntegerRange | undefined> {
  const values = `SELECT min(${item.name}) AS low, max(${item.name}) AS high FROM ${EVENTS}`;
  const listedValues = listed ? ` UNION ALL SELECT min(value), max(value) FROM ${LISTED_ITEMS}` : '';
  const row = await engine.row(`SELECT min(low) AS low, max(high) AS high FROM (${values}${listedValues})`);
  const length = count(row, 'high') - count(row, 'low') + 1;
  return length <= COMPACT_RANGE ? { first: count(row, 'low'), length } : undefined;
}

async function tableDictionary(
  engine: Engine,
  folder: string,
  { item, all, range }: { item: Field; all: string; range: IntegerRange },
): Promise<Dictionary> {
  await engine.run(`CREATE TABLE ${ITEMS} AS ${all}`);
  const writer = await openWriter(engine, { folder, field: item, from: ITEMS, of: 'item' });
  const dense = new Int32Array(range.length).fill(-1);
  let next = 0;
  await engine.stream(`SELECT value, n FROM ${ITEMS} ORDER BY ${ITEM_ORDER}`, chunk => {
    for (const value of addChunk(writer, chunk, item)) dense[Number(value) - range.first] = next++;
  });
  const piece = new Int32Array(1 << 16);
  let held = 0;
  for (const id of dense) {
    if (id < 0) continue;
    piece[held++] = id;
    if (held === piece.length) {
      writer.addOrder(piece);
      held = 0;
    }
  }
  writer.addOrder(piece.subarray(0, held));
  return { ...writer.finish(), table: { first: range.first, dense } };
}

async function joinDictionary(
  engine: Engine,
  folder: string,
  { item, all }: { item: Field; all: string },
): Promise<Dictionary> {
  await engine.run(
    `CREATE TABLE ${ITEMS} AS SELECT value, n, (row_number() OVER (ORDER BY ${ITEM_ORDER}) - 1)::INTEGER AS id FROM (${all})`,
  );
  const writer = await openWriter(engine, { folder, field: item, from: ITEMS, of: 'item' });
  await engine.stream(`SELECT value, n FROM ${ITEMS} ORDER BY id`, chunk => addChunk(writer, chunk, item));
  await engine.stream(`SELECT id FROM ${ITEMS} ORDER BY value`, chunk => writer.addOrder(int32Column(chunk, 0)));
  return { ...writer.finish(), table: undefined };
}

async function openWriter(
  engine: Engine,
  { folder, field, from, of }: { folder: string; field: Field; from: string; of: 'user' | 'item' },
): Promise<VocabularyWriter> {
  const integer = field.sqlType === 'BIGINT';
  const row = await engine.row(
    `SELECT count(*) AS size, ${integer ? '0' : 'sum(strlen(value))'} AS bytes FROM ${from}`,
  );
  const size = count(row, 'size');
  if (size > MAX_IDS)
    throw new UserError(
      'too-many-ids',
      `${size} different ${of}s`,
      `At most ${MAX_IDS} fit a 32-bit id: filter first.`,
    );
  return new VocabularyWriter(folder, {
    file: `${of}s.safetensors`,
    kind: integer ? 'integer' : 'text',
    order: of === 'user' ? 'ascending value' : 'descending count, then ascending value',
    size,
    textBytes: count(row, 'bytes'),
  });
}

/** Hand a chunk of (value, n) to the writer; returns the values. */
function addChunk(writer: VocabularyWriter, chunk: DuckDBDataChunk, field: Field): BigInt64Array | readonly string[] {
  const counts = int64Column(chunk, 1);
  if (field.sqlType === 'BIGINT') {
    const values = int64Column(chunk, 0);
    writer.addIntegers(values, counts);
    return values;
  }
  const texts = chunk.getColumnValues(0).map(String);
  writer.addTexts(texts, counts);
  return texts;
}
