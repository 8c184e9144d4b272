// Determines which columns are user, item, time, ... and their types: from the options, otherwise from the header's names and
// a sample of the rows. Ids are integers only if all are written as plain whole numbers; a single other one (7.7, 1e1, 007,
// +7) makes the whole column text, so no id is ever changed. Values that contradict the sample are found while reading
// (surprises.ts), and the columns are resolved again.

import { UserError } from '../../util/errors.js';
import type { ColumnDtype, TimeKind } from '../store/store-index.js';
import { ChoiceError } from './choice-error.js';
import type { Engine } from './engine.js';
import { type GuessedRole, guessColumn } from './guess-names.js';
import type { PrepareOptions } from './options.js';
import { type ColumnShape, sampleColumn } from './sample-columns.js';
import type { Source } from './source.js';
import { readTimes } from './time-field.js';

export type Role = 'user' | 'item' | 'time';

/** A value of the staged table: an SQL expression over the source's columns. */
export interface Field {
  readonly name: string;
  readonly sqlType: string;
  expression(source: Source): string;
}

export interface ExtraField extends Field {
  readonly dtype: ColumnDtype;
}

export interface ActionField extends Field {
  readonly kind: 'code' | 'label' | 'bits';
  readonly bits: readonly string[];
}

/** Findings from rows beyond the sample, made while reading. */
export interface Surprises {
  /** Fields that are not all whole numbers, with one counterexample each. */
  readonly text: ReadonlyMap<string, string>;
  /** Maximum decimals of a time, if the sample had only whole numbers. */
  readonly timeDigits: number | undefined;
}

export const NO_SURPRISES: Surprises = { text: new Map(), timeDigits: undefined };

export interface LogColumns {
  /** SQL types for reading the source's columns. */
  readonly readAs: ReadonlyMap<string, string>;
  readonly user: Field;
  readonly item: Field;
  /** Undefined: rows are in order. */
  readonly time: Field | undefined;
  readonly timeKind: TimeKind;
  readonly action: ActionField | undefined;
  readonly extras: readonly ExtraField[];
  /** Fields assumed to be whole numbers because of the sample, with their columns. */
  readonly assumed: ReadonlyMap<string, string>;
  /** The choices, for the report. */
  readonly chosen: Readonly<Record<string, string>>;
  readonly guessed: readonly string[];
  readonly notes: readonly string[];
}

/** Share of a sample that may deviate from the rest. Bad rows have a separate limit, --max-bad. */
const STRAYS = 0.01;

function mostly(part: number, { values }: ColumnShape): boolean {
  return values > 0 && part >= values * (1 - STRAYS);
}

interface Request {
  readonly options: PrepareOptions;
  readonly surprises: Surprises;
}

export async function resolveColumns(
  engine: Engine,
  source: Source,
  { options, surprises }: Request,
): Promise<LogColumns> {
  const names = nameColumns(source, options);
  const { user, item, time, action, bits, rating, extra } = names;
  const readAs = new Map(bits.map(bit => [bit, 'UTINYINT']));
  const assumed = new Map<string, string>();
  const notes: string[] = [];
  const shapes = new Map<string, ColumnShape>();
  const shape = async (name: string): Promise<ColumnShape> => {
    const found = shapes.get(name) ?? (await sampleColumn(engine, source, name));
    shapes.set(name, found);
    return found;
  };
  const plain = (role: string, name: string, sqlType: string): Field => {
    readAs.set(name, sqlType);
    return { name: role, sqlType, expression: from => from.value(name, sqlType) };
  };
  /** BIGINT if the sample has only whole numbers and reading has found no other value; otherwise text. */
  const whole = async (role: string, name: string, type: 'auto' | 'integer' | 'text'): Promise<Field> => {
    const field = { name: role, sqlType: 'BIGINT', expression: (from: Source): string => from.integer(name) };
    if (type === 'integer') return field;
    const { values, integers } = await shape(name);
    const stray = surprises.text.get(role);
    if (type === 'auto' && stray === undefined && values > 0 && integers === values) {
      assumed.set(role, name);
      return field;
    }
    if (stray !== undefined)
      notes.push(`'${name}' is read as text: ${JSON.stringify(stray)} is not a plain whole number`);
    return plain(role, name, 'VARCHAR');
  };

  const userField = await whole('user_key', user, options.idType);
  const itemField = await whole('item_key', item, options.idType);
  const column =
    time === undefined ? undefined : { name: time, shape: await shape(time), moreDigits: surprises.timeDigits };
  const times = column && (await readTimes(engine, source, { column, options }));
  if (times && times.note !== '') notes.push(times.note);
  if (times?.whole && time !== undefined) assumed.set('time', time);
  const extras: ExtraField[] = [];
  if (rating !== undefined) extras.push({ ...plain('rating', rating, 'FLOAT'), dtype: 'F32' });
  for (const name of extra) if (name !== rating) extras.push(extraField(name, await shape(name), plain));

  return {
    user: userField,
    item: itemField,
    time: times && { name: 'time', sqlType: 'BIGINT', expression: from => times.expression(from) },
    timeKind: times?.kind ?? 'order',
    action:
      bits.length > 0
        ? { ...bitField(bits), kind: 'bits', bits }
        : action === undefined
          ? undefined
          : actionField(await whole('action', action, 'auto')),
    extras,
    readAs,
    assumed,
    chosen: {
      user,
      item,
      time: time ?? 'none',
      ...(action !== undefined && { action }),
      ...(bits.length > 0 && { action: bits.join(' + ') }),
      ...(rating !== undefined && { rating }),
    },
    guessed: names.guessed,
    notes,
  };
}

interface ColumnNames {
  readonly user: string;
  readonly item: string;
  readonly time: string | undefined;
  readonly action: string | undefined;
  readonly bits: readonly string[];
  readonly rating: string | undefined;
  readonly extra: readonly string[];
  readonly guessed: readonly string[];
}

function nameColumns(source: Source, options: PrepareOptions): ColumnNames {
  const guessed: string[] = [];
  const named = (name: string, option: string): string => {
    if (source.columns.includes(name)) return name;
    throw new UserError(
      'no-such-column',
      `${source.file} has no column '${name}'`,
      `Change ${option}; the columns are ${source.columns.join(', ')}.`,
    );
  };
  const guess = (role: GuessedRole): string | undefined => {
    const name = guessColumn(role, source.columns);
    if (name !== undefined) guessed.push(role);
    return name;
  };
  const required = (role: Role): string => {
    const option = options[role];
    const name = option === undefined ? guess(role) : named(option, `--${role}`);
    if (name === undefined) throw unknownColumn(role, source.columns);
    return name;
  };
  const bits = (options.actionBits ?? []).map(name => named(name, '--action-bits'));
  return {
    user: required('user'),
    item: required('item'),
    time: options.time === 'none' ? undefined : required('time'),
    bits,
    action: options.action ? named(options.action, '--action') : bits.length > 0 ? undefined : guess('action'),
    rating: options.rating ? named(options.rating, '--rating') : guess('rating'),
    extra: options.extra.map(name => named(name, '--extra')),
    guessed,
  };
}

function unknownColumn(role: Role, columns: readonly string[]): ChoiceError {
  return new ChoiceError({
    code: 'unknown-column',
    message: `no column is clearly the ${role}; there are ${columns.join(', ')}`,
    remedy: `Name it: --${role} <column>${role === 'time' ? ', or --time none if the rows are already in order' : ''}.`,
    option: role,
    choices: columns,
  });
}

function actionField(field: Field): ActionField {
  return { ...field, kind: field.sqlType === 'BIGINT' ? 'code' : 'label', bits: [] };
}

function bitField(bits: readonly string[]): Field {
  return {
    name: 'action',
    sqlType: 'INTEGER',
    // Bitwise OR of shifts: addition would call a function per row and flag (10 % of the reading time, with doubles).
    expression: from =>
      `(${bits.map((bit, b) => `((${from.value(bit, 'UTINYINT')} <> 0)::UINTEGER << ${b})`).join(' | ')})::INTEGER`,
  };
}

function extraField(
  name: string,
  shape: ColumnShape,
  plain: (role: string, name: string, sqlType: string) => Field,
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
