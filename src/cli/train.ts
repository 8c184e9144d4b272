// `turbogr train`: a run from a store or a log file.
import { Command } from '@commander-js/extra-typings';
import { resolveConfig } from '../config/resolve.js';
import { train } from '../recipes/train.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';
import { watchRun } from './watch-run.js';

export function trainCommand() {
  return withConfigFlags(new Command('train').argument('<data>', 'a store made by `turbogr prepare`, or a log file'))
    .description('train a model, validate it as it goes, and test it at the end')
    .option('--run <folder>', 'where the run goes (runs/<data>-<model> unless given)')
    .option('--initial-weights <file>', 'start from exported weights instead of random ones')
    .option('--user <column>', 'user column, when <data> is a log file')
    .option('--item <column>', 'item column')
    .option('--time <column>', 'time column')
    .option('--action <column>', 'action column')
    .option('--json', 'print the report as JSON')
    .action(async (data, { run, initialWeights, user, item, time, action, json = false, ...flags }) => {
      const config = await readConfigFlags(flags);
      resolveConfig(...config); // what is wrong with it is said before the log is read
      const prepare = {
        ...(user && { user }),
        ...(item && { item }),
        ...(time && { time }),
        ...(action && { action }),
      };
      const start = { ...(run && { run }), ...(initialWeights && { initialWeights }) };
      await watchRun(json, watch => train({ data, config, prepare, ...start, ...watch }));
    });
}
