// Converts our CSV files to Parquet with DuckDB: types are inferred, row order is kept.

import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncFolder } from '../../util/atomic-file.js';

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Writes `parquet` from `csv` and removes `csv`. */
export async function convertToParquet(csv: string, parquet: string): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: '1GB', preserve_insertion_order: 'true' });
  const temp = `${parquet}.${process.pid}.tmp`;
  try {
    const connection = await instance.connect();
    try {
      await connection.run(
        `COPY (SELECT * FROM read_csv(${quoted(csv)}, header = true)) TO ${quoted(temp)} (FORMAT parquet, COMPRESSION zstd)`,
      );
    } finally {
      connection.closeSync();
    }
    const fd = openSync(temp, 'r+');
    fsyncSync(fd);
    closeSync(fd);
    renameSync(temp, parquet);
    syncFolder(dirname(parquet));
  } finally {
    instance.closeSync();
    rmSync(temp, { force: true });
    rmSync(csv, { force: true });
  }
}
