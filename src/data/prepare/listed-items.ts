// The items file: the catalogue's items, seen or not, and their features. The ids are in its first column, or in the one named
// like the log's item column; the others become item features.

import { UserError } from '../../util/errors.js';
import type { LogColumns } from './columns.js';
import { LISTED_ITEMS } from './dictionary.js';
import type { Engine } from './engine.js';
import type { FeatureTable, PrepareOptions } from './options.js';
import { openSource, type Source, UNREADABLE } from './source.js';

export interface ListedItems {
  /** Whether there is a table of listed items. */
  listed: boolean;
  /** Feature tables of the options, and that of the items file if it has more than ids. */
  tables: readonly FeatureTable[];
}

export async function listItems(engine: Engine, columns: LogColumns, options: PrepareOptions): Promise<ListedItems> {
  const { itemsFile: file, itemsDialect, features } = options;
  if (file === undefined) return { listed: false, tables: features };
  const source = await openSource(engine, file, { format: undefined, csv: itemsDialect, wholeRows: false });
  const name = source.columns.includes(columns.chosen['item'] ?? '') ? columns.chosen['item'] : source.columns[0];
  if (name === undefined) throw new UserError('no-items', `${file} has no columns`, 'Check --items.');
  const integer = columns.item.sqlType === 'BIGINT';
  if (integer) await refuseTexts(engine, source, name);
  await engine.run(
    `CREATE TABLE ${LISTED_ITEMS} AS SELECT DISTINCT value FROM (
       SELECT ${integer ? source.integer(name) : source.value(name, 'VARCHAR')} AS value FROM ${source.from(new Map())}
     ) WHERE value IS NOT NULL AND value <> ${integer ? UNREADABLE : "''"}`,
  );
  // Presets declare their feature tables, and their lists often have a special format.
  const plain = Object.keys(itemsDialect).length === 0 && !features.some(({ of }) => of === 'item');
  const tables = plain && source.columns.length > 1 ? [{ of: 'item' as const, files: [file], key: name }] : [];
  return { listed: true, tables: [...features, ...tables] };
}

/** They could not be part of the catalogue. */
async function refuseTexts(engine: Engine, source: Source, name: string): Promise<void> {
  const [text] = await engine.texts(
    `SELECT ${source.value(name, 'VARCHAR')} FROM ${source.from(new Map())} WHERE ${source.integer(name)} = ${UNREADABLE} LIMIT 1`,
  );
  if (text === undefined) return;
  throw new UserError(
    'items-not-integers',
    `${source.file} lists the item '${text}', and the log's items are whole numbers`,
    'Add --id-type text, or name the right column of the list like the item column of the log.',
  );
}
