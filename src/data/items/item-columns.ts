// Item metadata for answers and filters: columns of an items file (CSV, Parquet, JSON lines) or the store's item features, in
// the order of the dense ids.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import { Engine, literal } from '../prepare/engine.js';
import type { SequenceStore } from '../store/sequence-store.js';

export type ItemValue = string | number | boolean | null;

/** Columns by name; each has a value, or null, for every dense id. */
export type ItemColumns = ReadonlyMap<string, readonly ItemValue[]>;

/** Common names of the id column, tried in this order. */
const KEYS = ['item_id', 'item', 'itemId', 'id', 'video_id', 'movie_id', 'product_id', 'sku'];
const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*)$/;
const MEMORY_BYTES = 512e6;

export interface ItemsFile {
  file: string;
  /** Column with the item ids of the log; default: guessed. */
  key?: string;
}

/** Columns of an items file. Rows of items that the store does not know are skipped. */
export async function readItemsFile(
  store: Pick<SequenceStore, 'items' | 'itemId'>,
  { file, key }: ItemsFile,
): Promise<ItemColumns> {
  if (!existsSync(file)) throw new UserError('no-items-file', `${file} does not exist`, 'Name the file with --items.');
  const scratch = mkdtempSync(join(tmpdir(), 'turbogr-items-'));
  const engine = await Engine.open({ scratch, memoryBytes: MEMORY_BYTES });
  try {
    // Ids stay text: '007' is not 7.
    const from = /\.csv(\.gz)?$|\.tsv(\.gz)?$/.test(file) ? `read_csv(${literal(file)}, header = true)` : literal(file);
    const described = await engine.rows(`DESCRIBE SELECT * FROM ${from}`).catch((cause: unknown) => {
      const why = (cause instanceof Error ? cause.message : String(cause)).split('\n')[0];
      throw new UserError('unreadable-file', `${file} cannot be read: ${why}`, 'Check the items file.', { cause });
    });
    const names = described.map(row => String(row['column_name']));
    const id = key ?? KEYS.find(name => names.includes(name));
    if (id === undefined || !names.includes(id)) {
      const remedy = `Name the column of item ids with --items-key; there are ${names.join(', ')}.`;
      throw new UserError('no-such-column', `${file} has no column ${id ?? 'that looks like item ids'}`, remedy);
    }
    const columns = new Map<string, ItemValue[]>(
      names
        .filter(name => name !== id)
        .map(name => [name, Array.from<unknown, ItemValue>({ length: store.items }, () => null)]),
    );
    const numeric = new Set(
      described.filter(row => NUMBER.test(String(row['column_type']))).map(row => String(row['column_name'])),
    );
    await engine.eachRow(`SELECT * FROM ${from}`, row => {
      const dense = row[id] === null || row[id] === undefined ? undefined : store.itemId(String(row[id]));
      if (dense === undefined) return;
      for (const [name, values] of columns) {
        const value = row[name] ?? null;
        values[dense] = numeric.has(name) && value !== null ? Number(value) : value; // wide integers come as text
      }
    });
    return columns;
  } finally {
    engine.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The store's item features: labels as text, numbers as numbers. */
export function readStoredColumns(store: SequenceStore): ItemColumns {
  const columns = new Map<string, ItemValue[]>();
  for (const table of store.index.features.filter(({ of }) => of === 'item')) {
    const file = new SafetensorsFile(join(store.folder, table.file));
    try {
      for (const { name, dtype, labels } of table.columns) {
        if (dtype === 'I32') {
          columns.set(
            name,
            Array.from(file.read(name, 'I32'), label => labels[label] ?? null),
          );
        } else if (dtype === 'F32') {
          columns.set(
            name,
            Array.from(file.read(name, 'F32'), value => (Number.isNaN(value) ? null : value)),
          );
        }
      }
    } finally {
      file.close();
    }
  }
  return columns;
}
