// index.json of a sequence store: its files and their checksums. It is written last, so a folder that has one is complete. Its
// numbers are checked against each other and against the file sizes before use (read-index.ts). Layout of the folder:
//
//   index.json                    this file
//   events-00000.safetensors ...  jagged events of consecutive users: offsets i64 [users+1], item i32, time i64, ...
//   users.safetensors             vocabulary of the users, dense -> original, and back by the ascending order
//   items.safetensors             the same for the items
//   split.safetensors             length, train_end, validation_end i32 [users]
//   counts.safetensors            train, train_validation i32 [items of the vocabulary]: events of each item
//   report.json, rejects.csv      what was read, filtered and refused

import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomic } from '../../util/atomic-file.js';
import { canonicalJson, sha256 } from '../../util/hash.js';

export const INDEX_FILE = 'index.json';

const HASH = z.string().regex(/^[0-9a-f]{64}$/);
const COUNT = z.int().nonnegative();

const FILE = z.strictObject({
  /** A file name within the folder. */
  file: z.string().regex(/^\w[\w-]*\.safetensors$/),
  sha256: HASH,
  /** Absent in version 1. */
  bytes: COUNT.optional(),
});
export type FileEntry = z.infer<typeof FILE>;

export const VOCABULARY = FILE.extend({
  /** integer: i64 `value`. text: UTF-8 `bytes` cut by `offsets`. */
  kind: z.enum(['integer', 'text']),
  size: COUNT,
  /** Which original value gets which dense id. */
  order: z.enum(['ascending value', 'descending count, then ascending value', 'earlier ids, then new ones']),
});

/** Unit of the times since 1970, or 'order' when the log has an order and no times: then there is no time column. */
export const TIME_KIND = z.enum(['order', 's', 'ms', 'us', 'ns']);
export type TimeKind = z.infer<typeof TIME_KIND>;

export const TICKS_PER_DAY: Readonly<Record<Exclude<TimeKind, 'order'>, number>> = {
  s: 86_400,
  ms: 86_400e3,
  us: 86_400e6,
  ns: 86_400e9,
};

const COLUMN_DTYPE = z.enum(['I32', 'I64', 'F32', 'U8']);
export type ColumnDtype = z.infer<typeof COLUMN_DTYPE>;

export const STORE_INDEX = z.strictObject({
  format: z.literal('turbogr-store'),
  /** 2 adds to 1: `checksum`, `bytes` of every file, `counts`. */
  version: z.union([z.literal(1), z.literal(2)]),
  users: COUNT,
  /** Size of the catalogue to rank; at least the item vocabulary's size. */
  items: COUNT,
  events: COUNT,
  order: z.literal('user, time, input order'),
  time: z.strictObject({ kind: TIME_KIND }),
  /** Per-event columns besides the offsets. Missing values of extra columns are 0, or NaN if the dtype has it. */
  columns: z.array(z.strictObject({ name: z.string(), dtype: COLUMN_DTYPE, missing: COUNT })),
  /** code: an integer of the log. label: index into `labels`. bits: bit b set means labels[b]. */
  action: z.strictObject({ kind: z.enum(['code', 'label', 'bits']), labels: z.array(z.string()) }).nullable(),
  shards: z.array(FILE.extend({ firstUser: COUNT, users: COUNT, events: COUNT })),
  vocabulary: z.strictObject({ user: VOCABULARY, item: VOCABULARY }),
  split: FILE.extend({
    kind: z.string(),
    fingerprint: HASH,
    train: COUNT,
    validation: COUNT,
    test: COUNT,
  }),
  counts: FILE.optional(),
  /** Feature tables aligned with the dense ids, by 'user' or 'item'. */
  features: z.array(
    FILE.extend({
      of: z.enum(['user', 'item']),
      columns: z.array(z.strictObject({ name: z.string(), dtype: COLUMN_DTYPE, labels: z.array(z.string()) })),
      /** Columns that could not be stored: free text, or more labels than a feature has. */
      leftOut: z.array(z.string()),
    }),
  ),
  /** SHA-256 of all of the above in canonical JSON. */
  checksum: HASH.optional(),
});
export type StoreIndex = Omit<z.infer<typeof STORE_INDEX>, 'checksum'>;
export type ShardEntry = StoreIndex['shards'][number];
export type VocabularyEntry = z.infer<typeof VOCABULARY>;
export type SplitEntry = StoreIndex['split'];
export type FeatureEntry = StoreIndex['features'][number];
export type ActionEntry = NonNullable<StoreIndex['action']>;

export function writeStoreIndex(folder: string, index: StoreIndex): void {
  const whole = index.version === 1 ? index : { ...index, checksum: sha256(canonicalJson(index)) };
  writeFileAtomic(join(folder, INDEX_FILE), `${JSON.stringify(whole, null, 2)}\n`);
}

/** All files of the store that the index describes. */
export function filesOf({ shards, vocabulary, split, counts, features }: StoreIndex): FileEntry[] {
  return [...shards, vocabulary.user, vocabulary.item, split, ...(counts ? [counts] : []), ...features];
}

/**
 * Hash of everything that a model can see: events with times, actions and extra columns, ids, split, features. Unlike the
 * fingerprint, which covers only what makes evaluations comparable, it also depends on actions and features.
 */
export function contentHash(index: StoreIndex): string {
  const { items, time, columns, action, vocabulary, split, shards, features } = index;
  const hashes = (files: readonly FileEntry[]): string[] => files.map(({ sha256: hash }) => hash);
  return sha256(
    canonicalJson({
      format: 'turbogr-content-1',
      items,
      time,
      columns,
      action,
      fingerprint: split.fingerprint,
      files: hashes([vocabulary.user, vocabulary.item, split, ...shards]),
      features: features.map(table => ({ of: table.of, columns: table.columns, sha256: table.sha256 })),
    }),
  );
}
