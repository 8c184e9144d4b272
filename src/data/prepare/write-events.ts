// The sorted stream: DuckDB orders the staged events by (user, time, input order) out of core, this file maps the items
// and hands the columns to the shard writer, which cuts the users.

import type { DuckDBDataChunk } from '@duckdb/node-api';
import { UserError } from '../../util/errors.js';
import { type Column, type ColumnArray, ShardWriter } from '../store/shard-writer.js';
import type { ActionEntry, ShardEntry, StoreIndex } from '../store/store-index.js';
import type { Columns } from './columns.js';
import { type Dictionary, ITEMS, USERS } from './dictionary.js';
import { type Engine, count, int32Column, int64Column, numericColumn } from './engine.js';
import { EVENTS } from './stage.js';

const ACTIONS = 'action_labels';
const MAX_LABELS = 1 << 16;

export interface WrittenEvents {
  readonly shards: ShardEntry[];
  readonly lengths: Int32Array;
  readonly columns: StoreIndex['columns'];
  readonly action: ActionEntry | null;
  /** SHA-256 of the item column and of the time column if there is one, shards put together. */
  readonly content: string[];
}

export interface WriteEventsOptions {
  readonly folder: string;
  readonly columns: Columns;
  readonly items: Dictionary;
  readonly onEvents: (done: number) => void;
}

/** A stored column: its place in the store and its SQL. */
interface Output extends Column {
  readonly sql: string;
  readonly missing: number;
}

export async function writeEvents(engine: Engine, options: WriteEventsOptions): Promise<WrittenEvents> {
  const { folder, columns, items, onEvents } = options;
  const action = await actionEntry(engine, columns);
  const outputs = await storedColumns(engine, columns, items);
  const writer = new ShardWriter(folder, outputs);
  let done = 0;
  await engine.stream(await sortedQuery(engine, columns, { items, outputs }), chunk => {
    const values = outputs.map(({ dtype }, c) => column(chunk, c + 1, dtype));
    if (items.table) mapItems(values[0], items.table.dense);
    writer.add(int32Column(chunk, 0), values);
    onEvents((done += chunk.rowCount));
  });
  const hashes = writer.finish();
  return {
    shards: writer.shards,
    lengths: Int32Array.from(writer.lengths),
    columns: outputs.map(({ name, dtype, missing }) => ({ name, dtype, missing })),
    action,
    content: hashes.filter((_, c) => outputs[c]?.name === 'item' || outputs[c]?.name === 'time'),
  };
}

async function storedColumns(engine: Engine, columns: Columns, items: Dictionary): Promise<Output[]> {
  const outputs: Output[] = [
    {
      name: 'item',
      dtype: 'I32',
      sql: items.table ? `(item_key - ${items.table.first})::INTEGER` : `${ITEMS}.id`,
      missing: 0,
    },
  ];
  if (columns.timeKind !== 'order') outputs.push({ name: 'time', dtype: 'I64', sql: 'time', missing: 0 });
  if (columns.action) {
    const sql = columns.action.kind === 'label' ? `${ACTIONS}.id` : 'action';
    outputs.push({ name: 'action', dtype: 'I32', sql, missing: 0 });
  }
  for (const [x, { name, dtype }] of columns.extras.entries()) {
    const missing = count(await engine.row(`SELECT count(*) - count(x${x}) AS n FROM ${EVENTS}`), 'n');
    const blank = dtype === 'F32' ? "'nan'::FLOAT" : '0';
    outputs.push({ name, dtype, sql: missing > 0 ? `coalesce(x${x}, ${blank})` : `x${x}`, missing });
  }
  return outputs;
}

async function sortedQuery(
  engine: Engine,
  columns: Columns,
  { items, outputs }: { items: Dictionary; outputs: readonly Output[] },
): Promise<string> {
  const { rows } = await engine.row(`SELECT max(rowid) AS rows FROM ${EVENTS}`);
  const inputOrder = Number(rows) < 2 ** 31 ? `${EVENTS}.rowid::INTEGER` : `${EVENTS}.rowid`;
  const joins = [`JOIN ${USERS} ON ${EVENTS}.user_key = ${USERS}.value`];
  if (!items.table) joins.push(`JOIN ${ITEMS} ON ${EVENTS}.item_key = ${ITEMS}.value`);
  if (columns.action?.kind === 'label') joins.push(`JOIN ${ACTIONS} ON ${EVENTS}.action = ${ACTIONS}.label`);
  const order = [`${USERS}.id`, ...(columns.time ? ['time'] : []), inputOrder];
  return `SELECT ${USERS}.id, ${outputs.map(({ sql }) => sql).join(', ')} FROM ${EVENTS} ${joins.join(' ')} ORDER BY ${order.join(', ')}`;
}

async function actionEntry(engine: Engine, { action }: Columns): Promise<ActionEntry | null> {
  if (!action) return null;
  if (action.kind !== 'label') return { kind: action.kind, labels: [...action.bits] };
  await engine.run(
    `CREATE TABLE ${ACTIONS} AS SELECT label, (row_number() OVER (ORDER BY label) - 1)::INTEGER AS id
     FROM (SELECT DISTINCT action AS label FROM ${EVENTS})`,
  );
  const labels = await engine.rows(`SELECT label FROM ${ACTIONS} ORDER BY id LIMIT ${MAX_LABELS + 1}`);
  if (labels.length > MAX_LABELS) {
    throw new UserError(
      'too-many-actions',
      `the action column has more than ${MAX_LABELS} labels`,
      'Name another --action.',
    );
  }
  return { kind: 'label', labels: labels.map(row => String(row['label'])) };
}

function column(chunk: DuckDBDataChunk, at: number, dtype: Column['dtype']): ColumnArray {
  if (dtype === 'I32') return int32Column(chunk, at);
  if (dtype === 'I64') return int64Column(chunk, at);
  return dtype === 'F32' ? numericColumn(chunk, at, Float32Array) : numericColumn(chunk, at, Uint8Array);
}

/** In place: the chunk's memory is ours until the next chunk. */
function mapItems(column: ColumnArray | undefined, dense: Int32Array): void {
  if (!(column instanceof Int32Array)) throw new Error('items must arrive as 32-bit integers');
  for (let i = 0; i < column.length; i++) column[i] = dense[column[i] ?? -1] ?? -1;
}
