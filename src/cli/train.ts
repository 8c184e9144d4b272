// `turbogr train`: a run from a store or a log.
import { Command } from '@commander-js/extra-typings';
import { train } from '../jobs/train.js';
import { askChoices } from './ask-choices.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';
import { readPrepareFlags, withPrepareFlags } from './prepare-flags.js';
import { wholeNumber } from '../util/number-flags.js';
import { watchRun } from './watch-run.js';

export function trainCommand() {
  const command = withConfigFlags(
    new Command('train').argument('<data...>', 'a store made by `turbogr prepare`, or the files of a log (globs too)'),
  )
    .description('train a model, validate it during training, and test it at the end')
    .option('--run <folder>', 'folder of the run (default: runs/<data>-<model>)')
    .option('--reprepare', 'prepare a changed log again and restart the run; its weights are lost')
    .option('--initial-weights <file>', 'start from exported weights instead of random ones')
    .option('--no-verify', "do not verify the store's checksums")
    .option('--trace <file>', 'write the first steps of all ranks as a Chrome trace, by stream, stage and lane')
    .option('--ui [port]', 'show the run in a dashboard on 127.0.0.1 (default port: 6007)', wholeNumber)
    .option('--tensorboard', 'write event files for TensorBoard into the folder of the run')
    .option('--metrics <address>', 'serve figures for Prometheus at :port or host:port')
    .option('--json', 'print the report as JSON')
    .action(
      async (
        data,
        { run, reprepare, initialWeights, verify, trace, json = false, ui, tensorboard, metrics, ...flags },
      ) => {
        const settings = await readConfigFlags(flags);
        const { files, choices } = readPrepareFlags(data, command.opts());
        const start = {
          data: files,
          settings,
          verify,
          ...(run !== undefined && { run }),
          ...(reprepare && { reprepare }),
          ...(initialWeights !== undefined && { initialWeights }),
          ...(trace !== undefined && { trace }),
        };
        await watchRun(
          json,
          watch => askChoices(answers => train({ ...start, prepare: { ...choices, ...answers }, ...watch }), watch),
          { ui, tensorboard, metrics },
        );
      },
    );
  withPrepareFlags(command);
  return command;
}
