// index.json of a sequence store: what is in the folder, where, and with which checksum. It is written last, so a
// folder that has one is complete. Layout of the folder:
//
//   index.json                    this file
//   events-00000.safetensors ...  jagged events of consecutive users: offsets i64 [users+1], item i32, time i64, ...
//   users.safetensors             vocabulary of the users, dense -> original, and back by the ascending order
//   items.safetensors             the same for the items
//   split.safetensors             length, train_end, validation_end i32 [users]
//   report.json, rejects.csv      what was read, filtered and refused

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { UserError } from '../../util/errors.js';

export const INDEX_FILE = 'index.json';

const FILE = z.strictObject({ file: z.string(), sha256: z.string().length(64) });
const COUNT = z.int().nonnegative();

const VOCABULARY = FILE.extend({
  /** integer: i64 `value`. text: UTF-8 `bytes` cut by `offsets`. */
  kind: z.enum(['integer', 'text']),
  size: COUNT,
  /** Which original value gets which dense id. */
  order: z.enum(['ascending value', 'descending count, then ascending value']),
});

/** Unit of the times since 1970, or 'order' when the log has an order and no times: then there is no time column. */
export const TIME_KIND = z.enum(['order', 's', 'ms', 'us', 'ns']);
export type TimeKind = z.infer<typeof TIME_KIND>;

const COLUMN_DTYPE = z.enum(['I32', 'I64', 'F32', 'U8']);
export type ColumnDtype = z.infer<typeof COLUMN_DTYPE>;

const STORE_INDEX = z.strictObject({
  format: z.literal('turbogr-store'),
  version: z.literal(1),
  users: COUNT,
  /** Size of the catalogue to rank; at least the item vocabulary's size. */
  items: COUNT,
  events: COUNT,
  order: z.literal('user, time, input order'),
  time: z.strictObject({ kind: TIME_KIND }),
  /** Per-event columns beside the offsets. Missing values of extra columns are 0, or NaN where the dtype has one. */
  columns: z.array(z.strictObject({ name: z.string(), dtype: COLUMN_DTYPE, missing: COUNT })),
  /** code: an integer of the log. label: index into `labels`. bits: bit b set means labels[b]. */
  action: z.strictObject({ kind: z.enum(['code', 'label', 'bits']), labels: z.array(z.string()) }).nullable(),
  shards: z.array(FILE.extend({ firstUser: COUNT, users: COUNT, events: COUNT })),
  vocabulary: z.strictObject({ user: VOCABULARY, item: VOCABULARY }),
  split: FILE.extend({
    kind: z.string(),
    fingerprint: z.string().length(64),
    train: COUNT,
    validation: COUNT,
    test: COUNT,
  }),
  /** Feature tables aligned with the dense ids, by 'user' or 'item'. */
  features: z.array(
    FILE.extend({
      of: z.enum(['user', 'item']),
      columns: z.array(z.strictObject({ name: z.string(), dtype: COLUMN_DTYPE, labels: z.array(z.string()) })),
      /** Columns that could not be stored: free text, or more labels than a feature has. */
      leftOut: z.array(z.string()),
    }),
  ),
});
export type StoreIndex = z.infer<typeof STORE_INDEX>;
export type ShardEntry = StoreIndex['shards'][number];
export type VocabularyEntry = z.infer<typeof VOCABULARY>;
export type SplitEntry = StoreIndex['split'];
export type FeatureEntry = StoreIndex['features'][number];
export type ActionEntry = NonNullable<StoreIndex['action']>;

export function writeStoreIndex(folder: string, index: StoreIndex): void {
  writeFileAtomic(join(folder, INDEX_FILE), `${JSON.stringify(index, null, 2)}\n`);
}

export function readStoreIndex(folder: string): StoreIndex {
  const path = join(folder, INDEX_FILE);
  if (!existsSync(path)) {
    throw new UserError('not-a-store', `${folder} has no ${INDEX_FILE}`, 'Give a folder made by `turbogr prepare`.');
  }
  try {
    return STORE_INDEX.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    throw new UserError(
      'damaged-store',
      `${path} is not a store index: ${cause instanceof Error ? cause.message : String(cause)}`,
      'Prepare the log again.',
      { cause },
    );
  }
}
