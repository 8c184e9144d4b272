// `turbogr refit`: trains a finished run's model once more, on its validation events too.
import { Command } from '@commander-js/extra-typings';
import { refit } from '../jobs/refit.js';
import { watchRun } from './watch-run.js';

export function refitCommand() {
  return new Command('refit')
    .description('train a finished run again on its validation events too, with the epochs and priors they chose')
    .argument('<run>', 'folder of the finished run')
    .option('--run <folder>', 'folder of the new run (default: <run>-refit)')
    .option('--store <folder>', "the run's sequence store, if it was moved")
    .option('--no-verify', "do not verify the store's checksums")
    .option('--json', 'print the report as JSON')
    .action(async (parent, { json = false, run, store, verify }) => {
      const options = { verify, ...(run !== undefined && { run }), ...(store !== undefined && { store }) };
      await watchRun(json, watch => refit(parent, { ...watch, ...options }));
    });
}
