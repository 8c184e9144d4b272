// Wrapper of DuckDB: one database file in a scratch folder, a memory limit, results as plain rows or as a stream of column
// vectors. One engine may write the file, or several may read it. Independent of logs.

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { DuckDBConnection, DuckDBDataChunk, DuckDBInstance, DuckDBValue } from '@duckdb/node-api';
import { UserError } from '../../util/errors.js';

export interface EngineOptions {
  /** Folder for the database and spilled data. */
  readonly scratch: string;
  readonly memoryBytes: number;
  /** Default: all cores. */
  readonly threads?: number | undefined;
  /** If given: read-only, concurrently with other readers; the number of this reader. */
  readonly reader?: number | undefined;
}

export type Row = Record<string, string | number | boolean | null>;

export class Engine {
  private readonly instance: DuckDBInstance;
  private readonly connection: DuckDBConnection;
  private closed = false;

  static async open({
    scratch,
    memoryBytes,
    threads = availableParallelism(),
    reader,
  }: EngineOptions): Promise<Engine> {
    // Imported lazily: most importers of this file never open an engine.
    const duckdb = await import('@duckdb/node-api');
    const instance = await duckdb.DuckDBInstance.create(join(scratch, 'stage.duckdb'), {
      threads: String(threads),
      memory_limit: `${Math.floor(memoryBytes)}B`,
      temp_directory: join(scratch, reader === undefined ? 'spill' : `spill-${reader}`),
      access_mode: reader === undefined ? 'READ_WRITE' : 'READ_ONLY',
      autoinstall_known_extensions: 'false',
    });
    const connection = await instance.connect();
    // Dates without an offset are UTC, independent of the machine's time zone.
    await connection.run(
      "SET TimeZone = 'UTC'; SET enable_progress_bar = true; SET enable_progress_bar_print = false;",
    );
    return new Engine(instance, connection);
  }

  private constructor(instance: DuckDBInstance, connection: DuckDBConnection) {
    this.instance = instance;
    this.connection = connection;
  }

  async run(sql: string): Promise<void> {
    await this.connection.run(sql);
  }

  /** A small result. 64-bit integers are text: see count(). */
  async rows(sql: string): Promise<Row[]> {
    const reader = await this.connection.runAndReadAll(sql);
    return reader
      .getRowObjectsJson()
      .map(row =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [
            name,
            value !== null && typeof value === 'object' ? JSON.stringify(value) : value,
          ]),
        ),
      );
  }

  async row(sql: string): Promise<Row> {
    const [row] = await this.rows(sql);
    if (!row) throw new Error(`no row from: ${sql}`);
    return row;
  }

  /** A small result of one text column, byte-exact: DuckDB's strings lose a leading U+FEFF. */
  async texts(sql: string): Promise<string[]> {
    const texts: string[] = [];
    await this.stream(`SELECT encode(text) FROM (${sql}) AS result(text)`, chunk => {
      for (const bytes of blobColumn(chunk, 0)) texts.push(Buffer.from(bytes).toString('utf8'));
    });
    return texts;
  }

  /**
   * A large result in order, 2,048 rows at a time. DuckDB computes the next chunk while `take` processes this one. Stops when
   * `take` returns false; the next query drops the rest.
   */
  async stream(sql: string, take: (chunk: DuckDBDataChunk, names: string[]) => boolean | void): Promise<void> {
    const result = await this.connection.stream(sql);
    const names = result.columnNames();
    let next = result.fetchChunk();
    for (let chunk = await next; chunk && chunk.rowCount > 0; chunk = await next) {
      next = result.fetchChunk();
      if (take(chunk, names) !== false) continue;
      await next;
      return;
    }
  }

  /** A result of any size, row by row, in order; 64-bit integers as text. */
  async eachRow(sql: string, take: (row: Row) => void): Promise<void> {
    await this.stream(sql, (chunk, names) => {
      for (const values of chunk.getRows()) {
        take(Object.fromEntries(names.map((name, c) => [name, plain(values[c])])));
      }
    });
  }

  /** Progress of the running query, 0..1; undefined if unknown. */
  progress(): number | undefined {
    if (this.closed) return undefined;
    const { percentage } = this.connection.progress;
    return percentage >= 0 ? percentage / 100 : undefined;
  }

  /** May be called twice. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.connection.closeSync();
    this.instance.closeSync();
  }
}

function plain(value: DuckDBValue | undefined): Row[string] {
  if (value === null || value === undefined) return null;
  return typeof value === 'number' || typeof value === 'boolean' ? value : value.toString();
}

/** '1GB' -> 1e9, '1GiB' -> 2^30. */
export function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT])(i?)B$/i.exec(text);
  if (!match) throw new UserError('bad-size', `'${text}' is not a size`, 'Write it like 1GB or 512MiB.');
  const [, amount, unit = '', binary] = match;
  const power = 'KMGT'.indexOf(unit.toUpperCase()) + 1;
  return Math.floor(Number(amount) * (binary === '' ? 1000 : 1024) ** power);
}

/** A number from a row, also if it is text because it is 64 bits wide. */
export function count(row: Row, name: string): number {
  const value = row[name];
  if (value === null || value === undefined) return 0;
  return Number(value);
}

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function literal(text: string): string {
  // SQL text ends at a NUL.
  if (text.includes('\0')) return `decode(unhex('${Buffer.from(text).toString('hex')}'))`;
  return `'${text.replaceAll("'", "''")}'`;
}

export function int64Column(chunk: DuckDBDataChunk, column: number): BigInt64Array {
  return numericColumn(chunk, column, BigInt64Array);
}

export function int32Column(chunk: DuckDBDataChunk, column: number): Int32Array {
  return numericColumn(chunk, column, Int32Array);
}

/** Copies of a column's byte strings. Nulls must be handled in SQL. */
export function blobColumn(chunk: DuckDBDataChunk, column: number): Uint8Array[] {
  return chunk.getColumnValues(column).map(value => {
    if (value !== null && typeof value === 'object' && 'bytes' in value) return value.bytes;
    throw new Error(`column ${column} holds no bytes`);
  });
}

/** The column's memory without a copy, valid as long as the chunk. Nulls must be handled in SQL. */
export function numericColumn<A extends object>(chunk: DuckDBDataChunk, column: number, type: new () => A): A {
  const vector = chunk.getColumnVector(column);
  if ('items' in vector && vector.items instanceof type) return vector.items;
  throw new Error(`column ${column} is ${vector.type.toString()}, not ${type.name}`);
}
