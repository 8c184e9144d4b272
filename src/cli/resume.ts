// `turbogr resume`: an interrupted run goes on as if nothing had happened.
import { Command } from '@commander-js/extra-typings';
import { resume } from '../recipes/train.js';
import { watchRun } from './watch-run.js';

export function resumeCommand() {
  return new Command('resume')
    .description('continue an interrupted run from its newest sound checkpoint')
    .argument('<run>', 'folder of the run')
    .option('--json', 'print the report as JSON')
    .action(async (run, { json = false }) => {
      await watchRun(json, watch => resume(run, watch));
    });
}
