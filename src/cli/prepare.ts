// turbogr prepare: a raw interaction log in, a sequence store out.

import { Command } from '@commander-js/extra-typings';
import type { Progress } from '../data/prepare/options.js';
import { prepare } from '../data/prepare/prepare.js';
import { reportText } from '../data/prepare/report-text.js';
import { interruptible } from '../util/interrupt.js';
import { countNumber } from '../util/number-flags.js';
import { bar, formatShare, ProgressLine } from '../util/terminal.js';
import { askChoices } from './ask-choices.js';
import { readPrepareFlags, withPrepareFlags } from './prepare-flags.js';

export function prepareCommand() {
  const command = new Command('prepare')
    .description('convert an interaction log (CSV, Parquet, JSON lines; optionally gzipped) into a sequence store')
    .argument('<files...>', 'files, globs, or the folder of a preset, read in this order')
    .requiredOption('--out <folder>', 'folder of the new store')
    .option('--force', 'replace an existing store')
    .option('--threads <n>', 'default: all cores', countNumber)
    .option('--json', 'print the report as one JSON object')
    .action(async (names, { out, force, threads, json }) => {
      const { files, choices } = readPrepareFlags(names, command.opts());
      const place = { files, out, ...(force && { force }), ...(threads !== undefined && { threads }) };
      const line = new ProgressLine();
      const onProgress = (progress: Progress) => line.update(progressText(progress));
      const report = await interruptible(signal =>
        askChoices(
          answers => prepare({ ...choices, ...answers, ...place }, { signal, onProgress }).finally(() => line.clear()),
          { signal },
        ),
      );
      process.stdout.write(`${json ? JSON.stringify(report) : reportText(report)}\n`);
    });
  withPrepareFlags(command);
  return command;
}

/** The progress line of the preparation. */
export function progressText({ stage, share, detail }: Progress): string {
  const done = share === undefined ? '' : ` ${bar(share, 24).padEnd(24)} ${formatShare(share, 0)}`;
  return `${stage}${done} ${detail ?? ''}`;
}
