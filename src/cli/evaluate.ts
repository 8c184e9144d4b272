// `turbogr evaluate`: a trained run on its held-out events, beside the baselines.
import { Command, Option } from '@commander-js/extra-typings';
import { describeEvaluation } from '../eval/report.js';
import { evaluate } from '../recipes/evaluate.js';
import { parseWhole } from './config-flags.js';

export function evaluateCommand() {
  return new Command('evaluate')
    .description('rank the held-out events of a run in the whole catalogue, beside popularity and Markov')
    .argument('<run>', 'folder of the run')
    .addOption(
      new Option('--part <part>', 'held-out part').choices(['test', 'validation'] as const).default('test' as const),
    )
    .addOption(
      new Option('--exclude <what>', 'left out of the ranking; as in the config unless given').choices([
        'history',
        'input',
        'none',
      ] as const),
    )
    .option('--threads <count>', 'worker threads', parseWhole)
    .option('--json', 'print the report as JSON')
    .action(async (run, { json, part, exclude, threads }) => {
      const report = await evaluate(run, { part, ...(exclude && { exclude }), ...(threads && { threads }) });
      process.stdout.write(`${json ? JSON.stringify(report) : describeEvaluation(report)}\n`);
    });
}
