// Maps original ids to dense ids. Users are numbered by ascending original, items by descending count and then ascending
// original, so an item's id is its popularity rank; neither depends on DuckDB's threads. This is the general form, in DuckDB;
// compact-items.ts is faster for most integer ids.

import type { DuckDBDataChunk } from '@duckdb/node-api';
import { UserError } from '../../util/errors.js';
import type { VocabularyEntry } from '../store/store-index.js';
import { VocabularyWriter } from '../store/vocabulary-writer.js';
import type { Field } from './columns.js';
import { type Engine, blobColumn, count, int32Column, int64Column } from './engine.js';
import { EVENTS, ofEvent } from './stage.js';

/** Tables of the staged database: value, n, id. Compact items have none. */
export const USERS = 'users';
export const ITEMS = 'items';
/** Dense order of the rows of each. */
export const USER_ORDER = 'value';
export const ITEM_ORDER = 'n DESC, value';
/** Originals listed in the items file, one per row, possibly repeated. */
export const LISTED_ITEMS = 'listed_items';

const MAX_IDS = 2 ** 31 - 1;

export interface Dictionary {
  readonly entry: VocabularyEntry;
  /** SHA-256 of the values in dense order. */
  readonly content: string;
  /** Ids that occur in an event. */
  readonly seen: number;
}

/** The users, and their numbers of events in shared memory. */
export async function userDictionary(
  engine: Engine,
  folder: string,
  user: Field,
): Promise<Dictionary & { lengths: Int32Array }> {
  await engine.run(
    `CREATE TABLE ${USERS} AS SELECT value, n, (row_number() OVER (ORDER BY ${USER_ORDER}) - 1)::INTEGER AS id
     FROM (SELECT ${ofEvent(user.name)} AS value, count(*) AS n FROM ${EVENTS} GROUP BY value)`,
  );
  const writer = await openWriter(engine, { folder, field: user, from: USERS, of: 'user' });
  const lengths = new Int32Array(new SharedArrayBuffer(writer.size * Int32Array.BYTES_PER_ELEMENT));
  let next = 0;
  await engine.stream(`SELECT ${stored(user)}, n FROM ${USERS} ORDER BY id`, chunk => {
    addChunk(writer, chunk, user);
    lengths.set(Array.from(int64Column(chunk, 1), Number), next);
    writer.addOrder(Int32Array.from({ length: chunk.rowCount }, () => next++));
  });
  return { ...writer.finish(), seen: next, lengths };
}

export interface ItemDictionaryOptions {
  readonly folder: string;
  readonly item: Field;
  /** Also assign ids to the items in LISTED_ITEMS, after those that occur. */
  readonly listed: boolean;
}

export async function itemDictionary(
  engine: Engine,
  { folder, item, listed }: ItemDictionaryOptions,
): Promise<Dictionary> {
  const occurring = `SELECT ${ofEvent(item.name)} AS value, count(*) AS n FROM ${EVENTS} GROUP BY value`;
  const all = listed
    ? `SELECT value, max(n) AS n FROM (${occurring} UNION ALL SELECT value, 0 FROM ${LISTED_ITEMS}) GROUP BY value`
    : occurring;
  await engine.run(
    `CREATE TABLE ${ITEMS} AS SELECT value, n, (row_number() OVER (ORDER BY ${ITEM_ORDER}) - 1)::INTEGER AS id FROM (${all})`,
  );
  const writer = await openWriter(engine, { folder, field: item, from: ITEMS, of: 'item' });
  await engine.stream(`SELECT ${stored(item)}, n FROM ${ITEMS} ORDER BY id`, chunk => addChunk(writer, chunk, item));
  await engine.stream(`SELECT id FROM ${ITEMS} ORDER BY value`, chunk => writer.addOrder(int32Column(chunk, 0)));
  const seen = count(await engine.row(`SELECT count(*) AS n FROM ${ITEMS} WHERE n > 0`), 'n');
  return { ...writer.finish(), seen };
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

/** Text as bytes: DuckDB's strings lose a leading U+FEFF on the way to JavaScript. */
function stored({ sqlType }: Field): string {
  return sqlType === 'BIGINT' ? 'value' : 'encode(value)';
}

/** Passes a chunk of (value, n) to the writer. */
function addChunk(writer: VocabularyWriter, chunk: DuckDBDataChunk, field: Field): void {
  const counts = int64Column(chunk, 1);
  if (field.sqlType === 'BIGINT') writer.addIntegers(int64Column(chunk, 0), counts);
  else writer.addTexts(blobColumn(chunk, 0), counts);
}
