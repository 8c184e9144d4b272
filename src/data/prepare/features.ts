// Feature tables (one row per user or item) in the order of the dense ids, one tensor per column. Numbers become f32, NaN if
// missing; text becomes an i32 index into the column's labels, -1 if missing.

import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { SafetensorsWriter, type TensorSpec } from '../../util/safetensors.js';
import { fileEntry } from '../store/file-entry.js';
import type { FeatureEntry } from '../store/store-index.js';
import type { Field, LogColumns } from './columns.js';
import { ITEMS, ITEM_ORDER, USERS, USER_ORDER } from './dictionary.js';
import { type Engine, count, identifier, int32Column, literal, numericColumn } from './engine.js';
import type { FeatureTable } from './options.js';

/** Text with more labels than this is free text or an id: the column is left out and listed in the index. */
const MAX_LABELS = 10_000;
const NUMBER = /^(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*)$/;

export interface FeatureOptions {
  readonly folder: string;
  readonly tables: readonly FeatureTable[];
  readonly columns: LogColumns;
}

type FeatureColumn = FeatureEntry['columns'][number];

export async function writeFeatures(engine: Engine, options: FeatureOptions): Promise<FeatureEntry[]> {
  const entries: FeatureEntry[] = [];
  for (const [t, table] of options.tables.entries()) {
    entries.push(await writeTable(engine, options, { table, file: `features-${t}-${table.of}.safetensors` }));
  }
  return entries;
}

async function writeTable(
  engine: Engine,
  { folder, columns }: FeatureOptions,
  { table, file }: { table: FeatureTable; file: string },
): Promise<FeatureEntry> {
  const [ids, order, key] = table.of === 'user' ? [USERS, USER_ORDER, columns.user] : [ITEMS, ITEM_ORDER, columns.item];
  await engine
    .run(
      `CREATE OR REPLACE TABLE features AS ${table.files.map(path => `SELECT * FROM ${tableSource(path, table, key)}`).join(' UNION ALL BY NAME ')}`,
    )
    .catch((cause: unknown) => {
      const why = (cause instanceof Error ? cause.message : String(cause)).split('\n')[0];
      throw new UserError('unreadable-file', `${named(table)} cannot be read: ${why}`, 'Check the feature table.', {
        cause,
      });
    });
  const described = await engine.rows('DESCRIBE features');
  if (!described.some(row => row['column_name'] === table.key)) {
    throw new UserError(
      'no-such-column',
      `${named(table)} has no column '${table.key}'`,
      'It must have the id as a column.',
    );
  }
  await refuseDuplicates(engine, table);

  const outputs: (FeatureColumn & { sql: string })[] = [];
  const leftOut: string[] = [];
  for (const row of described) {
    const name = String(row['column_name']);
    if (name === table.key) continue;
    const column = identifier(name);
    if (NUMBER.test(String(row['column_type']))) {
      outputs.push({ name, dtype: 'F32', labels: [], sql: `coalesce(${column}::FLOAT, 'nan'::FLOAT)` });
    } else {
      const labels = await distinctLabels(engine, name);
      if (labels.length > MAX_LABELS) {
        leftOut.push(name);
        continue;
      }
      const list = `[${labels.map(literal).join(', ')}]::VARCHAR[]`;
      outputs.push({
        name,
        dtype: 'I32',
        labels,
        sql: `coalesce(list_position(${list}, ${column}::VARCHAR), 0)::INTEGER - 1`,
      });
    }
  }

  const size = count(await engine.row(`SELECT count(*) AS n FROM ${ids}`), 'n');
  const specs: Record<string, TensorSpec> = {};
  for (const { name, dtype } of outputs) specs[name] = { dtype, shape: [size] };
  const writer = new SafetensorsWriter(join(folder, file), specs);
  await engine.stream(
    `SELECT ${outputs.map(({ sql }) => sql).join(', ')} FROM ${ids}
     LEFT JOIN features ON ${ids}.value = TRY_CAST(features.${identifier(table.key)} AS ${key.sqlType})
     ORDER BY ${order}`,
    chunk => {
      for (const [c, { name, dtype }] of outputs.entries()) {
        writer.append(name, dtype === 'F32' ? numericColumn(chunk, c, Float32Array) : int32Column(chunk, c));
      }
    },
  );
  writer.close();
  await engine.run('DROP TABLE features');
  const listed = outputs.map(({ name, dtype, labels }) => ({ name, dtype, labels }));
  return { of: table.of, ...fileEntry(folder, file), columns: listed, leftOut };
}

function named({ files }: FeatureTable): string {
  return files.join(', ');
}

/** Ids that are text in the log stay text: '007' is not 7. */
function tableSource(path: string, { key }: FeatureTable, { sqlType }: Pick<Field, 'sqlType'>): string {
  if (sqlType !== 'VARCHAR' || !/\.[ct]sv(\.gz)?$/.test(path)) return literal(path);
  return `read_csv(${literal(path)}, types = {${literal(key)}: 'VARCHAR'})`;
}

async function refuseDuplicates(engine: Engine, table: FeatureTable): Promise<void> {
  const { key } = table;
  const [twice] = await engine.rows(
    `SELECT ${identifier(key)}::VARCHAR AS id FROM features GROUP BY ALL HAVING count(*) > 1 ORDER BY id LIMIT 1`,
  );
  if (twice)
    throw new UserError(
      'duplicate-features',
      `${named(table)} has ${key} ${String(twice['id'])} twice`,
      'Keep one row per id.',
    );
}

async function distinctLabels(engine: Engine, column: string): Promise<string[]> {
  return await engine.texts(
    `SELECT DISTINCT ${identifier(column)}::VARCHAR AS label FROM features WHERE label IS NOT NULL ORDER BY label LIMIT ${MAX_LABELS + 1}`,
  );
}
