// `turbogr update`: continues a trained run with newer events, as a new run.
import { Command } from '@commander-js/extra-typings';
import type { ExtendReport } from '../data/extend/extend-store.js';
import type { ExtendedWeights } from '../jobs/extend-weights.js';
import { update } from '../jobs/update.js';
import { fitted, formatCount } from '../util/terminal.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';
import { readPrepareFlags, withPrepareFlags } from './prepare-flags.js';
import { watchRun } from './watch-run.js';

export function updateCommand() {
  const command = withConfigFlags(
    new Command('update')
      .argument('<run>', 'folder of the parent run')
      .argument('<log...>', 'files of the newer log; events that the run already has are skipped'),
  )
    .description('continue with newer events: new items and users are added, the result is a new run')
    .option('--run <folder>', 'folder of the new run (default: <run>-update-<n>)')
    .option('--store <folder>', "the run's sequence store, if it was moved")
    .option('--no-verify', "do not verify the new store's checksums")
    .option('--json', 'print the report as JSON')
    .action(async (parent, data, { run, store, verify, json = false, ...flags }) => {
      const settings = await readConfigFlags(flags);
      const { files, choices } = readPrepareFlags(data, command.opts());
      await watchRun(json, watch =>
        update({
          parent,
          data: files,
          prepare: choices,
          settings,
          verify,
          ...(run !== undefined && { run }),
          ...(store !== undefined && { store }),
          onExtended: report => void (json || process.stdout.write(`${fitted(describeExtension(report))}\n`)),
          ...watch,
        }),
      );
    });
  withPrepareFlags(command);
  return command;
}

function describeExtension(report: ExtendReport & ExtendedWeights): string {
  const { newEvents, knownEvents, newUsers, newItems, neighbours, features, neither } = report;
  const known = knownEvents === 0 ? '' : `, ${formatCount(knownEvents)} already known and skipped`;
  const starts = [
    [neighbours, 'the mean of their neighbours'],
    [features, 'the mean of items with the same features'],
    [neither, 'the mean of all items'],
  ] as const;
  const from = starts.filter(([count]) => count > 0).map(([count, start]) => `${formatCount(count)} from ${start}`);
  return (
    `${formatCount(newEvents)} new events${known}; ${formatCount(newUsers)} new users, ${formatCount(newItems)} new items` +
    (from.length > 0 ? ` (${from.join(', ')})` : '')
  );
}
