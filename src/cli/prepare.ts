// turbogr prepare: a raw interaction log in, a sequence store out.

import { createInterface } from 'node:readline/promises';
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { UnknownColumnError } from '../data/prepare/columns.js';
import type { PrepareInput, PrepareReport, Progress } from '../data/prepare/options.js';
import { prepare } from '../data/prepare/prepare.js';
import { PRESETS, presetOptions } from '../data/prepare/presets.js';
import { reportText } from '../data/prepare/report-text.js';
import { ProgressLine, bar, formatShare } from '../util/terminal.js';

const INTERRUPTED_STATUS = 130;

export function prepareCommand() {
  return new Command('prepare')
    .description('turn an interaction log (CSV, Parquet, JSON lines; gzipped or not) into a sequence store')
    .argument('<files...>', 'files, globs, or the folder of a preset, read in this order')
    .requiredOption('--out <folder>', 'the store to make')
    .option('--force', 'replace a store that is already there')
    .addOption(new Option('--preset <name>', 'layout of a public data set').choices(Object.keys(PRESETS)))
    .addOption(
      new Option('--exposure <kind>', "which of a preset's logs")
        .choices(['standard', 'random'] as const)
        .default('standard' as const),
    )
    .optionsGroup('Columns (guessed from the header when left out)')
    .option('--user <column>', 'who')
    .option('--item <column>', 'what')
    .option('--time <column>', "when; 'none' when the rows are in order")
    .addOption(
      new Option('--time-unit <unit>', "unit of the times; 'order' when they only give an order").choices([
        'order',
        's',
        'ms',
        'us',
        'ns',
      ] as const),
    )
    .option('--action <column>', 'kind of event: integers or labels')
    .option('--action-bits <columns...>', 'flag columns that make up the action, the first as bit 0')
    .option('--rating <column>', 'rating or weight')
    .option('--extra <columns...>', 'further numeric columns to keep')
    .addOption(new Option('--id-type <type>', 'type of the ids').choices(['auto', 'integer', 'text'] as const))
    .optionsGroup('Input')
    .addOption(
      new Option('--format <format>', 'instead of the file ending').choices(['csv', 'json', 'parquet'] as const),
    )
    .option('--delimiter <text>', 'of CSV, up to four characters')
    .option('--no-header', 'the CSV has no header')
    .option('--max-bad <share>', 'stop above this share of bad rows (default 0.01)', number)
    .optionsGroup('Filters, applied in this order')
    .option('--min-rating <x>', 'keep ratings from here on', number)
    .option('--actions <actions...>', 'keep these actions: codes, labels or bit names')
    .option('--from <time>', "keep times from here on: a number in the log's unit, or a date")
    .option('--to <time>', 'keep times before this')
    .option('--drop-repeats', 'keep the first of consecutive events with the same item')
    .option('--min-user <n>', 'events a user must have', integer)
    .option('--min-item <n>', 'events an item must have', integer)
    .option('--k-core <n>', 'both, until nothing changes', integer)
    .optionsGroup('Catalogue, split, resources')
    .option('--items <file>', 'lists items that belong to the catalogue, seen or not')
    .option('--catalogue <n>', 'reserve ids up to this catalogue size', integer)
    .option('--split <rule>', 'leave-one-out, none, time:<cut>, time:<cut>,<cut>, user:<share> (default leave-one-out)')
    .option('--memory <size>', "limit of DuckDB's memory (default 1GB)")
    .option('--threads <n>', 'default: all cores', integer)
    .option('--json', 'print the report as one JSON object')
    .action(async (files, flags) => {
      const { preset, exposure, json, items, delimiter, header, ...rest } = flags;
      const fromPreset = preset === undefined ? { files } : presetOptions(preset, files, exposure);
      const dialect = { ...(delimiter !== undefined && { delimiter }), ...(!header && { header }) };
      const report = await interruptible(signal =>
        askForColumns(
          {
            ...fromPreset,
            ...rest,
            files: fromPreset.files ?? files,
            csv: { ...fromPreset.csv, ...dialect },
            ...(items !== undefined && { itemsFile: items }),
          },
          signal,
        ),
      );
      process.stdout.write(`${json ? JSON.stringify(report) : reportText(report)}\n`);
    });
}

function integer(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(text);
}

function number(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || Number.isNaN(value)) throw new InvalidArgumentError('It must be a number.');
  return value;
}

/** Ctrl-C and SIGTERM stop the work, remove what was begun, and end with the usual status. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => {
    process.exitCode = INTERRUPTED_STATUS;
    controller.abort();
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of signals) process.on(name, stop);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of signals) process.off(name, stop);
  }
}

/** On a terminal, a column that the header does not settle is asked for; elsewhere it is an error. */
async function askForColumns(input: PrepareInput, signal: AbortSignal): Promise<PrepareReport> {
  const line = new ProgressLine();
  try {
    return await prepare(input, { signal, onProgress: progress => line.update(progressText(progress)) });
  } catch (error) {
    line.clear();
    if (!(error instanceof UnknownColumnError) || !process.stdin.isTTY || !process.stderr.isTTY) throw error;
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const answer = await terminal.question(`Which column is the ${error.role}? (${error.columns.join(', ')}) `, {
      signal,
    });
    terminal.close();
    return askForColumns({ ...input, [error.role]: answer.trim() }, signal);
  } finally {
    line.clear();
  }
}

function progressText({ stage, share, detail }: Progress): string {
  const done = share === undefined ? '' : ` ${bar(share, 24).padEnd(24)} ${formatShare(share, 0)}`;
  return `${stage}${done} ${detail ?? ''}`;
}
