// `turbogr resume`: continues an interrupted run, with the same result as without the interruption.
import { Command } from '@commander-js/extra-typings';
import { resume } from '../jobs/train.js';
import { wholeNumber } from '../util/number-flags.js';
import { watchRun } from './watch-run.js';

export function resumeCommand() {
  return new Command('resume')
    .description('continue an interrupted run from its newest valid checkpoint')
    .argument('<run>', 'folder of the run')
    .option('--store <folder>', "the run's sequence store, if it was moved")
    .option('--no-verify', "do not verify the store's checksums")
    .option('--ui [port]', 'show the run in a dashboard on 127.0.0.1 (default port: 6007)', wholeNumber)
    .option('--tensorboard', 'write event files for TensorBoard into the folder of the run')
    .option('--metrics <address>', 'serve figures for Prometheus at :port or host:port')
    .option('--json', 'print the report as JSON')
    .action(async (run, { json = false, store, verify, ...flags }) => {
      const options = { verify, ...(store !== undefined && { store }) };
      await watchRun(json, watch => resume(run, { ...watch, ...options }), flags);
    });
}
