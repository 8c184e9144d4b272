// Options and report of `prepare`. Plain data: it is sent to the worker process as is.

import { z } from 'zod';
import { TIME_KIND } from '../store/store-index.js';

const NAME = z.string().min(1);
const COUNT = z.int().positive();

export const CSV_DIALECT = z.strictObject({
  delimiter: z.string().optional(),
  /** Empty: the file has no quoting. */
  quote: z.string().optional(),
  header: z.boolean().optional(),
  /** Names for a file without a header. */
  names: z.array(NAME).optional(),
  encoding: z.enum(['utf-8', 'latin-1', 'utf-16']).optional(),
});
export type CsvDialect = z.infer<typeof CSV_DIALECT>;

/** A table may consist of several files with the same columns. */
export const FEATURE_TABLE = z.strictObject({
  of: z.enum(['user', 'item']),
  files: z.array(z.string()).min(1),
  key: NAME,
});
export type FeatureTable = z.infer<typeof FEATURE_TABLE>;

export const PREPARE_OPTIONS = z.strictObject({
  files: z.array(z.string()).min(1),
  out: z.string().min(1),
  /** Replace an existing store. */
  force: z.boolean().default(false),
  format: z.enum(['csv', 'json', 'parquet']).optional(),
  csv: CSV_DIALECT.default({}),

  /** Columns; default: guessed from the header. */
  user: NAME.optional(),
  item: NAME.optional(),
  /** 'none': the order of the rows is the order of the events. */
  time: NAME.optional(),
  timeUnit: TIME_KIND.optional(),
  /** Date format for strptime, such as '%d/%m/%Y %H:%M'. Not needed for ISO 8601 and common formats. */
  timeFormat: NAME.optional(),
  action: NAME.optional(),
  /** Flag columns (0 or 1) that form the action: bit b is column b. */
  actionBits: z.array(NAME).max(31).optional(),
  rating: NAME.optional(),
  extra: z.array(NAME).default([]),
  idType: z.enum(['auto', 'integer', 'text']).default('auto'),

  minRating: z.number().optional(),
  /** Remove events with one of these actions: codes, labels or names of bits. */
  withoutActions: z.array(z.string()).optional(),
  /** Keep only these actions: codes, labels, or names of bits, any of which must be set. */
  actions: z.array(z.string()).optional(),
  /** Keep times in [from, to): a number in the log's unit, or a date. */
  from: z.string().optional(),
  to: z.string().optional(),
  dropRepeats: z.boolean().default(false),
  minUser: COUNT.optional(),
  minItem: COUNT.optional(),
  /** Minimum distinct users per item. */
  minItemUsers: COUNT.optional(),
  kCore: COUNT.optional(),

  /** A file whose first column (or the one named like the item) lists items that belong to the catalogue, seen or not. */
  itemsFile: z.string().optional(),
  itemsDialect: CSV_DIALECT.default({}),
  catalogue: COUNT.optional(),
  features: z.array(FEATURE_TABLE).default([]),

  split: z.string().default('leave-one-out'),
  /** DuckDB's memory limit, for example 1GB. */
  memory: z.string().default('1GB'),
  threads: COUNT.optional(),
  /** Share of bad rows above which the run stops. */
  maxBad: z.number().min(0).max(1).default(0.01),
});
export type PrepareOptions = z.infer<typeof PREPARE_OPTIONS>;
export type PrepareInput = z.input<typeof PREPARE_OPTIONS>;

export type Stage = 'read' | 'filter' | 'vocabulary' | 'sort and write' | 'finish';
export interface Progress {
  readonly stage: Stage;
  /** 0..1, or undefined when unknown. */
  readonly share?: number | undefined;
  /** The file being read. */
  readonly detail?: string;
}

export interface BadRow {
  readonly file: string;
  /** Counted in records, including the header. */
  readonly line: number;
  readonly reason: string;
  readonly content: string;
}

export interface PrepareReport {
  readonly out: string;
  readonly files: readonly { readonly file: string; readonly rows: number; readonly bad: number }[];
  readonly rows: number;
  readonly bad: {
    readonly rows: number;
    readonly share: number;
    readonly reasons: Readonly<Record<string, number>>;
    readonly samples: readonly BadRow[];
  };
  readonly columns: Readonly<Record<string, string>>;
  /** Those that were guessed by name. */
  readonly guessed: readonly string[];
  /** Notes on how columns were interpreted. */
  readonly notes: readonly string[];
  readonly filters: readonly { readonly name: string; readonly removed: number; readonly left: number }[];
  readonly users: number;
  readonly items: number;
  /** Items that occur in events; the rest of the catalogue is only listed or reserved. */
  readonly seenItems: number;
  readonly events: number;
  readonly time: { readonly kind: string; readonly first: number | null; readonly last: number | null };
  readonly lengths: {
    readonly min: number;
    readonly median: number;
    readonly mean: number;
    readonly p90: number;
    readonly p99: number;
    readonly max: number;
    readonly histogram: readonly { readonly from: number; readonly to: number; readonly users: number }[];
  };
  readonly topItems: readonly { readonly id: string; readonly events: number; readonly share: number }[];
  readonly split: {
    readonly kind: string;
    readonly train: number;
    readonly validation: number;
    readonly test: number;
    readonly fingerprint: string;
  };
  readonly seconds: Readonly<Record<string, number>>;
}
