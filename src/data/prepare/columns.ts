// Which column is the user, the item, the time, ... and of which type: from the options, else guessed from the
// header's names and a sample of the rows. A guess is only made when exactly one name fits.

import { UserError } from '../../util/errors.js';
import type { ColumnDtype, TimeKind } from '../store/store-index.js';
import { type Engine, type Row, count } from './engine.js';
import type { PrepareOptions } from './options.js';
import type { Source } from './source.js';

export type Role = 'user' | 'item' | 'time';

/** A role that neither an option nor the header settles; the command line may ask. */
export class UnknownColumnError extends UserError {
  readonly role: Role;
  readonly columns: readonly string[];

  constructor(role: Role, columns: readonly string[]) {
    super(
      'unknown-column',
      `no column is clearly the ${role}; there are ${columns.join(', ')}`,
      `Name it: --${role} <column>${role === 'time' ? ', or --time none when the rows are in order already' : ''}.`,
    );
    this.role = role;
    this.columns = columns;
  }
}

/** A value of the staged table: an SQL expression over the source's columns. */
export interface Field {
  readonly name: string;
  readonly sqlType: string;
  expression(source: Source): string;
}

export interface ExtraField extends Field {
  readonly dtype: ColumnDtype;
}

export interface Columns {
  /** SQL types with which the source's columns are to be read. */
  readonly readAs: ReadonlyMap<string, string>;
  readonly user: Field;
  readonly item: Field;
  /** Undefined: rows are in order. */
  readonly time: Field | undefined;
  readonly timeKind: TimeKind;
  readonly action: (Field & { readonly kind: 'code' | 'label' | 'bits'; readonly bits: readonly string[] }) | undefined;
  readonly extras: readonly ExtraField[];
  /** What was chosen, for the report. */
  readonly chosen: Readonly<Record<string, string>>;
}

const GUESSES: Record<Role | 'action' | 'rating', RegExp> = {
  user: /^(user_?id|user|uid|userid|reviewer_?id|customer_?id|visitor_?id|session_?id)$/i,
  item: /^(item_?id|item|iid|video_?id|movie_?id|track_?id|product_?id|parent_asin|asin)$/i,
  time: /^(timestamp|time|ts|time_ms|time_s|unix_?time|unix_?review_?time|datetime|event_?time|created_?at)$/i,
  action: /^(action|event_?type|behaviou?r)$/i,
  rating: /^(rating|overall|score|stars)$/i,
};

const SAMPLE_ROWS = 20_000;
const INTEGER = String.raw`'-?(0|[1-9]\d{0,17})'`;

interface Shape {
  readonly values: number;
  readonly integers: number;
  readonly fractions: number;
  readonly numbers: number;
  readonly dates: number;
  readonly median: number;
  readonly largest: number;
}

export async function resolveColumns(engine: Engine, source: Source, options: PrepareOptions): Promise<Columns> {
  const known = new Set(source.columns);
  const named = (name: string, option: string): string => {
    if (known.has(name)) return name;
    throw new UserError(
      'no-such-column',
      `${source.file} has no column '${name}'`,
      `Change ${option}; the columns are ${source.columns.join(', ')}.`,
    );
  };
  const guess = (role: Role | 'action' | 'rating'): string | undefined => {
    const fits = source.columns.filter(name => GUESSES[role].test(name));
    return fits.length === 1 ? fits[0] : undefined;
  };
  const required = (role: Role): string => {
    const option = options[role];
    const name = option === undefined ? guess(role) : named(option, `--${role}`);
    if (name === undefined) throw new UnknownColumnError(role, source.columns);
    return name;
  };

  const user = required('user');
  const item = required('item');
  const time = options.time === 'none' ? undefined : required('time');
  const bits = (options.actionBits ?? []).map(name => named(name, '--action-bits'));
  const action = options.action ? named(options.action, '--action') : bits.length > 0 ? undefined : guess('action');
  const rating = options.rating ? named(options.rating, '--rating') : guess('rating');
  const extraNames = options.extra.map(name => named(name, '--extra'));

  const wanted = [user, item, time, action, rating, ...extraNames].filter(name => name !== undefined);
  const shapes = await sample(engine, source, [...new Set(wanted)]);
  const shape = (name: string): Shape => {
    const found = shapes.get(name);
    if (!found) throw new Error(`column ${name} was not sampled`);
    return found;
  };
  const mostly = (part: number, { values }: Shape): boolean => values > 0 && part >= values * (1 - options.maxBad);

  const readAs = new Map<string, string>();
  const plain = (role: string, name: string, sqlType: string): Field => {
    readAs.set(name, sqlType);
    return { name: role, sqlType, expression: from => from.value(name, sqlType) };
  };
  const id = (role: Role, name: string): Field => {
    const s = shape(name);
    const integer = options.idType === 'integer' || (options.idType === 'auto' && mostly(s.integers, s));
    return plain(`${role}_key`, name, integer ? 'BIGINT' : 'VARCHAR');
  };

  const times = time === undefined ? undefined : timeField(time, shape(time), options, mostly);
  if (times && time !== undefined) readAs.set(time, times.readAs);
  for (const bit of bits) readAs.set(bit, 'UTINYINT');

  return {
    user: id('user', user),
    item: id('item', item),
    time: times?.field,
    timeKind: times?.kind ?? 'order',
    action:
      bits.length > 0
        ? { ...bitField(bits), kind: 'bits', bits }
        : action === undefined
          ? undefined
          : mostly(shape(action).integers, shape(action))
            ? { ...plain('action', action, 'INTEGER'), kind: 'code', bits: [] }
            : { ...plain('action', action, 'VARCHAR'), kind: 'label', bits: [] },
    extras: [
      ...(rating === undefined ? [] : [{ ...plain('rating', rating, 'FLOAT'), dtype: 'F32' as const }]),
      ...extraNames.filter(name => name !== rating).map(name => extraField(name, shape(name), plain, mostly)),
    ],
    readAs,
    chosen: {
      user,
      item,
      time: time ?? 'none',
      ...(action !== undefined && { action }),
      ...(bits.length > 0 && { action: bits.join(' + ') }),
      ...(rating !== undefined && { rating }),
    },
  };
}

async function sample(engine: Engine, source: Source, names: readonly string[]): Promise<Map<string, Shape>> {
  const raw = names.map((name, i) => `${source.value(name, 'VARCHAR')} AS c${i}`).join(', ');
  const facts = names.map(
    (_, i) => `count(c${i}) AS values${i}, count(*) FILTER (regexp_full_match(c${i}, ${INTEGER})) AS integers${i},
      count(TRY_CAST(c${i} AS DOUBLE)) AS numbers${i}, count(TRY_CAST(c${i} AS TIMESTAMPTZ)) AS dates${i},
      count(*) FILTER (TRY_CAST(c${i} AS DOUBLE) <> floor(TRY_CAST(c${i} AS DOUBLE))) AS fractions${i},
      median(TRY_CAST(c${i} AS DOUBLE)) AS median${i}, max(abs(TRY_CAST(c${i} AS DOUBLE))) AS largest${i}`,
  );
  const row: Row = await engine.row(
    `SELECT ${facts.join(', ')} FROM (SELECT ${raw} FROM ${source.from(new Map())} LIMIT ${SAMPLE_ROWS})`,
  );
  return new Map(
    names.map((name, i) => [
      name,
      {
        values: count(row, `values${i}`),
        integers: count(row, `integers${i}`),
        fractions: count(row, `fractions${i}`),
        numbers: count(row, `numbers${i}`),
        dates: count(row, `dates${i}`),
        median: count(row, `median${i}`),
        largest: count(row, `largest${i}`),
      },
    ]),
  );
}

type Mostly = (part: number, shape: Shape) => boolean;

/** Integers stay as they are; fractions of a second become milliseconds; dates become milliseconds since 1970. */
function timeField(
  name: string,
  shape: Shape,
  options: PrepareOptions,
  mostly: Mostly,
): { field: Field; kind: TimeKind; readAs: string } {
  const field = (expression: (value: string) => string, readAs: string): Field => ({
    name: 'time',
    sqlType: 'BIGINT',
    expression: from => expression(from.value(name, readAs)),
  });
  if (!mostly(shape.numbers, shape) && mostly(shape.dates, shape)) {
    // Cast here and not by the CSV reader, which would ignore an offset such as +02:00.
    return {
      field: field(value => `epoch_ms(TRY_CAST(${value} AS TIMESTAMPTZ))`, 'VARCHAR'),
      kind: 'ms',
      readAs: 'VARCHAR',
    };
  }
  const kind = options.timeUnit ?? guessTimeKind(name, shape.median);
  if (shape.fractions === 0 && mostly(shape.integers, shape))
    return { field: field(value => value, 'BIGINT'), kind, readAs: 'BIGINT' };
  if (kind === 's' && shape.fractions > 0) {
    return { field: field(value => `CAST(round(${value} * 1000) AS BIGINT)`, 'DOUBLE'), kind: 'ms', readAs: 'DOUBLE' };
  }
  return { field: field(value => `CAST(floor(${value}) AS BIGINT)`, 'DOUBLE'), kind, readAs: 'DOUBLE' };
}

/** By name, else by magnitude: 1e8 s is 1973, 1e11 ms the same year, and so on; anything smaller counts events. */
export function guessTimeKind(name: string, median: number): TimeKind {
  if (/order|rank|position|index|seq/i.test(name)) return 'order';
  if (median >= 1e17) return 'ns';
  if (median >= 1e14) return 'us';
  if (median >= 1e11) return 'ms';
  return median >= 1e8 ? 's' : 'order';
}

function bitField(bits: readonly string[]): Field {
  return {
    name: 'action',
    sqlType: 'INTEGER',
    // An or of shifts: adding in any type calls a function per row and flag (a tenth of the reading, with doubles).
    expression: from =>
      `(${bits.map((bit, b) => `((${from.value(bit, 'UTINYINT')} <> 0)::UINTEGER << ${b})`).join(' | ')})::INTEGER`,
  };
}

function extraField(
  name: string,
  shape: Shape,
  plain: (role: string, name: string, sqlType: string) => Field,
  mostly: Mostly,
): ExtraField {
  if (mostly(shape.integers, shape)) {
    return shape.largest < 2 ** 31
      ? { ...plain(name, name, 'INTEGER'), dtype: 'I32' }
      : { ...plain(name, name, 'BIGINT'), dtype: 'I64' };
  }
  if (mostly(shape.numbers, shape)) return { ...plain(name, name, 'FLOAT'), dtype: 'F32' };
  throw new UserError(
    'extra-not-a-number',
    `the extra column '${name}' holds text`,
    'Extra columns are numbers; use --action for labels, or a feature table keyed by the item.',
  );
}
