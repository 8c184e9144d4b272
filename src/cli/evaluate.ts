// `turbogr evaluate`: a trained run and the baselines on its held-out events.
import { Command, Option } from '@commander-js/extra-typings';
import { describeEvaluation } from '../eval/report.js';
import { evaluate } from '../jobs/evaluate.js';
import { validationShare } from '../jobs/left-out.js';
import { openStore } from '../jobs/open-run.js';
import { judge } from '../jobs/verdict.js';
import { RunFolder } from '../train/run-folder.js';
import { wholeNumber } from '../util/number-flags.js';
import { fitted } from '../util/terminal.js';
import { describeVerdict } from './describe.js';

export function evaluateCommand() {
  return new Command('evaluate')
    .description(
      'rank the held-out events of a run in the whole catalogue; compare with popularity, Markov, recency and their blend',
    )
    .argument('<run>', 'folder of the run')
    .addOption(
      new Option('--part <part>', 'held-out part').choices(['test', 'validation'] as const).default('test' as const),
    )
    .addOption(
      new Option('--exclude <what>', 'excluded from the ranking (default: as in the config)').choices([
        'history',
        'input',
        'none',
      ] as const),
    )
    .option('--store <folder>', "the run's sequence store, if it was moved")
    .option('--no-verify', "do not verify the store's checksums")
    .option('--threads <count>', 'worker threads', wholeNumber)
    .option('--segments', 'also by history length, target popularity, and new or repeated targets')
    .option('--json', 'print the report as JSON')
    .action(async (run, { json, part, exclude, threads, store, verify, segments = false }) => {
      const report = await evaluate(run, {
        part,
        verify,
        segments,
        ...(exclude && { exclude }),
        ...(threads && { threads }),
        ...(store !== undefined && { store }),
      });
      const known = RunFolder.open(run);
      const { config } = known.description;
      const source = openStore(known, store);
      const heldOut = validationShare(source, config);
      const verdict = judge({ run, test: report, store: source.folder, epochs: config.epochs, heldOut });
      const text = `${describeEvaluation(report)}\n\n${describeVerdict(verdict)}`;
      process.stdout.write(`${json ? JSON.stringify({ ...report, verdict }) : fitted(text)}\n`);
    });
}
