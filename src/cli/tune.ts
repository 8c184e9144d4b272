// `turbogr tune`: a search for better settings than the rules choose, on validation events only.
import { Command } from '@commander-js/extra-typings';
import { resolveConfig } from '../config/resolve.js';
import { type Trial, tune } from '../jobs/tune.js';
import { UserError } from '../util/errors.js';
import { interruptible } from '../util/interrupt.js';
import { table } from '../util/terminal.js';
import { wholeNumber } from '../util/number-flags.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';

export function tuneCommand() {
  return withConfigFlags(new Command('tune').argument('<store>', 'a store made by `turbogr prepare`'))
    .description(
      'search for better settings by successive halving, on validation events only; resumes after an interruption',
    )
    .option(
      '--budget <time>',
      'such as 20m or 2h, counted on two cores of the reference machine; ends after twice that in real time',
      '20m',
    )
    .option('--out <folder>', 'folder for trials, leaderboard and winner (default: <store>-tune)')
    .option('--search-seed <number>', 'other candidates', wholeNumber, 1)
    .option('--json', 'print the leaderboard as JSON')
    .action(async (store, { budget, out, searchSeed, json = false, ...flags }) => {
      const config = await readConfigFlags(flags);
      resolveConfig(...config); // reports errors before the first trial
      const minutes = parseMinutes(budget);
      const report = await interruptible(signal =>
        tune({
          store,
          folder: out ?? `${store.replace(/\/+$/, '')}-tune`,
          minutes,
          config,
          seed: searchSeed,
          signal,
          onTrial: trial => process.stderr.write(`${describeTrial(trial).join('  ')}\n`),
        }),
      );
      if (json) {
        process.stdout.write(`${JSON.stringify(report)}\n`);
        return;
      }
      const { leaderboard, winner, stopped } = report;
      if (leaderboard.length === 0) {
        process.stdout.write('stopped before the first trial ended; run the same command to resume\n');
        return;
      }
      const rows = leaderboard.map(describeTrial);
      process.stdout.write(`${table(['rung', 'value', 'epochs', 'settings'], rows)}\n\n`);
      if (stopped) process.stdout.write('stopped early; run the same command to resume\n');
      process.stdout.write(`winner: npx turbogr train ${store} --config ${winner}\n`);
    });
}

function describeTrial({ rung, value, best, epochs, candidate, settings }: Trial): string[] {
  const text = candidate === 0 ? "the rules' choice" : JSON.stringify(settings).replaceAll('"', '');
  return [String(rung + 1), value.toFixed(4), `${best} of ${epochs}`, text];
}

function parseMinutes(text: string): number {
  const [, number, unit = 'm'] = /^(\d+(?:\.\d+)?)([smh])?$/.exec(text) ?? [];
  const minutes = Number(number ?? 0) * (unit === 's' ? 1 / 60 : unit === 'h' ? 60 : 1);
  if (minutes > 0) return minutes;
  throw new UserError('bad-flag', `--budget ${text}: no time`, 'Write 20m, 90s or 2h.');
}
