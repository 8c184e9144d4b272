// One lane's part of the sort: DuckDB sorts the events of consecutive users by (user, time, input order), out of core where
// it must; this file counts the items and hands the columns to the shard writer, which cuts the users.

import type { DuckDBDataChunk } from '@duckdb/node-api';
import { type Column, type ColumnArray, type ShardPlan, ShardWriter } from '../store/shard-writer.js';
import { type Engine, int32Column, int64Column, numericColumn } from './engine.js';

export interface SortTask {
  readonly kind: 'sort';
  /** Sorted events of the shards' users: the dense user, then the columns, the item first. */
  readonly query: string;
  readonly folder: string;
  readonly columns: readonly Column[];
  readonly shards: readonly ShardPlan[];
  readonly lengths: Int32Array;
}

/** Items are counted in `tally` if it has places. */
export async function sortShards(
  engine: Engine,
  { query, folder, columns, shards, lengths }: SortTask,
  tally: Int32Array,
): Promise<void> {
  await engine.run('SET preserve_insertion_order = false');
  const writer = new ShardWriter({ folder, columns, shards, lengths });
  await engine.stream(query, chunk => {
    const values = columns.map(({ dtype }, c) => column(chunk, c + 1, dtype));
    if (tally.length > 0) countItems(int32Column(chunk, 1), tally);
    writer.add(int32Column(chunk, 0), values);
  });
  writer.finish();
}

function column(chunk: DuckDBDataChunk, at: number, dtype: Column['dtype']): ColumnArray {
  if (dtype === 'I32') return int32Column(chunk, at);
  if (dtype === 'I64') return int64Column(chunk, at);
  return dtype === 'F32' ? numericColumn(chunk, at, Float32Array) : numericColumn(chunk, at, Uint8Array);
}

function countItems(places: Int32Array, tally: Int32Array): void {
  for (let i = 0; i < places.length; i++) {
    const place = places[i] ?? 0;
    tally[place] = (tally[place] ?? 0) + 1;
  }
}
