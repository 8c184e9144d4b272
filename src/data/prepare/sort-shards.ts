// One worker's part of the sort: the events of consecutive users by (user, time, input order), passed to the shard writer and
// counted by item. Many logs are already sorted, so events are first taken in input order; from the first event that is out
// of order, DuckDB sorts, out of core if necessary.

import type { DuckDBDataChunk } from '@duckdb/node-api';
import { type Column, type ColumnArray, type ShardPlan, ShardWriter } from '../store/shard-writer.js';
import { type Engine, int32Column, int64Column, literal, numericColumn } from './engine.js';

/** The events as SQL. */
export interface EventQuery {
  readonly events: string;
  /** Table of the users: value, and id, which ascends with it. */
  readonly users: string;
  /** The user column of the events: a value of `users`. */
  readonly user: string;
  readonly integerUser: boolean;
  /** Further dictionaries that the columns need. */
  readonly joins: readonly string[];
  /** The stored columns, the item first. */
  readonly columns: readonly string[];
  /** Sort key of a user's events: an integer, never null. Undefined: input order. */
  readonly time: string | undefined;
  /** Position of an event in the input. */
  readonly inputOrder: string;
}

export interface SortTask {
  readonly kind: 'sort';
  readonly query: EventQuery;
  readonly folder: string;
  readonly columns: readonly Column[];
  readonly shards: readonly ShardPlan[];
  readonly lengths: Int32Array;
}

/** Items are counted in `tally` unless it is empty. */
export async function sortShards(engine: Engine, task: SortTask, tally: Int32Array): Promise<void> {
  const done = mayLieInOrder(task) ? await writeInOrder(engine, task, tally) : 0;
  const left = task.shards.slice(done);
  if (left.length > 0) await sortAndWrite(engine, { ...task, shards: left }, tally);
}

/** A join does not preserve order: DuckDB delays small pieces of its result to the end. */
function mayLieInOrder({ query }: SortTask): boolean {
  return query.integerUser && query.joins.length === 0;
}

/** Writes shards as long as events are in order. Returns the number of complete ones. */
async function writeInOrder(engine: Engine, task: SortTask, tally: Int32Array): Promise<number> {
  const { query, columns, shards } = task;
  const { low, high, within } = await userRange(engine, task);
  if (Number(low) < 0 || Number(high) >= COMPARABLE) return 0;
  const values = [...query.columns];
  const place = (sql: string): number =>
    values.includes(sql) ? values.indexOf(sql) : values.push(`${sql}::BIGINT`) - 1;
  const user = place(query.user);
  const inputOrder = place(query.inputOrder);
  const time = query.time === undefined ? inputOrder : place(query.time);
  const inOrder = orderCheck(shards[0]?.firstUser ?? 0);
  const writer = shardWriter(task, tally);
  await engine.run('SET preserve_insertion_order = true');
  await engine.stream(`SELECT ${values.join(', ')} FROM ${query.events} WHERE ${within}`, chunk => {
    const key = (at: number): Float64Array => comparable(int64Column(chunk, at));
    const users = inOrder(key(user), key(inputOrder), key(time));
    return users !== undefined && writer.add(users, storedColumns(chunk, columns, 0));
  });
  return writer.complete;
}

async function sortAndWrite(engine: Engine, task: SortTask, tally: Int32Array): Promise<void> {
  const { query, columns, shards } = task;
  const { within } = await userRange(engine, task);
  const id = `${query.users}.id`;
  const ids = userIds(task);
  const writer = shardWriter(task, tally);
  await engine.run('SET preserve_insertion_order = false');
  await engine.stream(
    `SELECT ${[id, ...query.columns].join(', ')} FROM ${query.events}
     JOIN ${query.users} ON ${query.user} = ${query.users}.value ${query.joins.join(' ')}
     WHERE ${within} AND ${id} BETWEEN ${ids.first} AND ${ids.last}
     ORDER BY ${[id, ...timeOf(query), query.inputOrder].join(', ')}`,
    chunk => writer.add(int32Column(chunk, 0), storedColumns(chunk, columns, 1)),
  );
  const missing = shards[writer.complete];
  if (missing) throw new Error(`${missing.file} did not get the events of its users, in order`);
}

function timeOf({ time }: EventQuery): string[] {
  return time === undefined ? [] : [time];
}

function userIds({ shards }: SortTask): { first: number; last: number } {
  const first = shards[0]?.firstUser ?? 0;
  return { first, last: first + shards.reduce((n, { users }) => n + users, 0) - 1 };
}

/** The originals of the task's first and last user, and an SQL condition for the range, with which DuckDB skips other rows. */
async function userRange(engine: Engine, task: SortTask): Promise<{ low: string; high: string; within: string }> {
  const { query } = task;
  const { first, last } = userIds(task);
  const range = `FROM ${query.users} WHERE id BETWEEN ${first} AND ${last}`;
  const [low = '', high = ''] = await engine.texts(
    `SELECT min(value)::VARCHAR ${range} UNION ALL SELECT max(value)::VARCHAR ${range}`,
  );
  const sql = query.integerUser ? String : literal;
  return { low, high, within: `${query.user} BETWEEN ${sql(low)} AND ${sql(high)}` };
}

function shardWriter({ folder, columns, shards, lengths }: SortTask, tally: Int32Array): ShardWriter {
  return new ShardWriter({
    folder,
    columns,
    shards,
    lengths,
    onShard: ([items]) => {
      if (tally.length > 0 && items instanceof Int32Array) countItems(items, tally);
    },
  });
}

function storedColumns(chunk: DuckDBDataChunk, columns: readonly Column[], from: number): ColumnArray[] {
  return columns.map(({ dtype }, c) => {
    if (dtype === 'I32') return int32Column(chunk, from + c);
    if (dtype === 'I64') return int64Column(chunk, from + c);
    return dtype === 'F32' ? numericColumn(chunk, from + c, Float32Array) : numericColumn(chunk, from + c, Uint8Array);
  });
}

/** Integers from 0 to this are ordered like the doubles with the same bits; comparing BigInts is slow. */
const COMPARABLE = 2 ** 62;

function comparable({ buffer, byteOffset, length }: BigInt64Array): Float64Array {
  return new Float64Array(buffer, byteOffset, length);
}

type OrderCheck = (user: Float64Array, inputOrder: Float64Array, time: Float64Array) => Int32Array | undefined;

/**
 * Checks, across calls, that users and the times of each user never descend and that ties are in input order. Returns the dense
 * users of the call's events, counted from `firstUser`, in memory that the next call reuses; undefined if out of order.
 */
function orderCheck(firstUser: number): OrderCheck {
  const last = { dense: firstUser - 1, user: -1, time: -1, input: -1 };
  let memory = new Int32Array(0);
  return (user, inputOrder, time) => {
    if (memory.length < user.length) memory = new Int32Array(user.length);
    const users = memory.subarray(0, user.length);
    let { dense, user: lastUser, time: lastTime, input: lastInput } = last;
    for (let i = 0; i < users.length; i++) {
      const u = user[i] ?? -1;
      const t = time[i] ?? -1;
      const n = inputOrder[i] ?? -1;
      if (u < lastUser || (u === lastUser && t < lastTime) || n <= lastInput) return undefined;
      if (u !== lastUser) dense++;
      users[i] = dense;
      lastUser = u;
      lastTime = t;
      lastInput = n;
    }
    Object.assign(last, { dense, user: lastUser, time: lastTime, input: lastInput });
    return users;
  };
}

function countItems(places: Int32Array, tally: Int32Array): void {
  for (let i = 0; i < places.length; i++) {
    const place = places[i] ?? 0;
    tally[place] = (tally[place] ?? 0) + 1;
  }
}
