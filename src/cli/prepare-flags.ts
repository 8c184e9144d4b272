// Flags for reading a log, shared by `prepare` and `train`.

import { Option } from '@commander-js/extra-typings';
import { z } from 'zod';
import { CSV_DIALECT, type CsvDialect, PREPARE_OPTIONS, type PrepareInput } from '../data/prepare/options.js';
import { PRESETS, presetOptions } from '../data/prepare/presets.js';
import { countNumber, finiteNumber } from '../util/number-flags.js';

/** A flag in a group of the help text. */
function flag(group: string, usage: string, description: string): Option {
  return new Option(usage, description).helpGroup(group);
}

function flags(): Option[] {
  const [preset, columns, input, filters, rest] = [
    'Presets:',
    'Columns (default: guessed from the header):',
    'Input:',
    'Filters, applied in this order:',
    'Catalogue, split, memory:',
  ] as const;
  return [
    flag(preset, '--preset <name>', 'layout of a public data set').choices(Object.keys(PRESETS)),
    flag(preset, '--exposure <kind>', "which of a preset's logs").choices(['standard', 'random']).default('standard'),
    flag(preset, '--keep-all', 'skip the filters of the preset'),
    flag(columns, '--user <column>', 'who'),
    flag(columns, '--item <column>', 'what'),
    flag(columns, '--time <column>', "time of the event; 'none' if the rows are in order"),
    flag(columns, '--time-unit <unit>', "unit of the times; 'order' if they only give an order").choices([
      'order',
      's',
      'ms',
      'us',
      'ns',
    ]),
    flag(columns, '--time-format <format>', "date format for strptime, such as '%d/%m/%Y %H:%M'"),
    flag(columns, '--action <column>', 'kind of event: integers or labels'),
    flag(columns, '--action-bits <columns...>', 'flag columns that form the action, the first as bit 0'),
    flag(columns, '--rating <column>', 'rating or weight'),
    flag(columns, '--extra <columns...>', 'further numeric columns to keep'),
    flag(columns, '--id-type <type>', 'type of the ids (default auto: integers if all are, else text)').choices([
      'auto',
      'integer',
      'text',
    ]),
    flag(input, '--format <format>', 'input format (default: by file extension)').choices(['csv', 'json', 'parquet']),
    flag(input, '--delimiter <text>', 'CSV delimiter, up to four characters'),
    flag(input, '--no-header', 'the CSV has no header'),
    flag(input, '--encoding <name>', 'of CSV (default utf-8)').choices(CSV_DIALECT.shape.encoding.unwrap().options),
    flag(input, '--max-bad <share>', 'stop above this share of bad rows (default 0.01)').argParser(finiteNumber),
    flag(filters, '--min-rating <x>', 'keep ratings of at least this').argParser(finiteNumber),
    flag(filters, '--without-actions <actions...>', 'drop these actions: codes, labels or bit names'),
    flag(filters, '--actions <actions...>', 'keep these actions: codes, labels or bit names'),
    flag(filters, '--from <time>', "keep times from this on: a number in the log's unit, or a date"),
    flag(filters, '--to <time>', 'keep times before this'),
    flag(filters, '--drop-repeats', 'keep the first of consecutive events with the same item'),
    flag(filters, '--min-user <n>', 'minimum number of events per user').argParser(countNumber),
    flag(filters, '--min-item <n>', 'minimum number of events per item').argParser(countNumber),
    flag(filters, '--min-item-users <n>', 'minimum number of distinct users per item').argParser(countNumber),
    flag(filters, '--k-core <n>', 'minimum events per user and per item, until nothing changes').argParser(countNumber),
    flag(rest, '--items <file>', 'items of the catalogue, seen or not; its other columns become item features'),
    flag(rest, '--catalogue <n>', 'reserve ids up to this catalogue size').argParser(countNumber),
    flag(rest, '--split <rule>', 'leave-one-out, none, time:<cut>, time:<cut>,<cut>, user:<share>'),
    flag(rest, '--memory <size>', "limit of DuckDB's memory (default 1GB)"),
  ];
}

/**
 * Adds the flags. `readPrepareFlags` reads their values with a schema: inferring the types of so many flags together with those
 * of a config would take the compiler minutes.
 */
export function withPrepareFlags(command: { addOption(option: Option): unknown }): void {
  for (const option of flags()) command.addOption(option);
}

/** Flags with the name of an option of `prepare`, and those with different names. */
const FLAGS = PREPARE_OPTIONS.omit({
  files: true,
  out: true,
  force: true,
  threads: true,
  csv: true,
  itemsFile: true,
  itemsDialect: true,
  features: true,
})
  .partial()
  .extend({
    preset: z.string().optional(),
    exposure: z.enum(['standard', 'random']),
    keepAll: z.boolean().default(false),
    delimiter: z.string().optional(),
    header: z.boolean(),
    encoding: CSV_DIALECT.shape.encoding,
    items: z.string().optional(),
  })
  .strip();

/** The options of `prepare` from flags and preset; only explicit keys are present. */
export function readPrepareFlags(
  names: readonly string[],
  values: object,
): { files: string[]; choices: Omit<PrepareInput, 'files' | 'out' | 'force' | 'threads'> } {
  const { preset, exposure, keepAll, delimiter, header, encoding, items, ...options } = FLAGS.parse(values);
  const isGiven = (key: string) => key in values && Reflect.get(values, key) !== undefined;
  const { files = [...names], ...fromPreset } =
    preset === undefined ? {} : presetOptions(preset, names, { exposure, keepAll });
  const csv: CsvDialect = {
    ...fromPreset.csv,
    ...(delimiter !== undefined && { delimiter }),
    ...(!header && { header }),
    ...(encoding !== undefined && { encoding }),
  };
  const choices = {
    ...fromPreset,
    ...Object.fromEntries(Object.entries(options).filter(([key]) => isGiven(key))),
    ...(Object.keys(csv).length > 0 && { csv }),
    ...(items !== undefined && { itemsFile: items }),
  };
  return { files, choices };
}
