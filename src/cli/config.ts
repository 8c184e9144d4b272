// `turbogr config`: shows the resolved config, the list of recipes, or the JSON Schema for editors.
import { Command } from '@commander-js/extra-typings';
import { stringify } from 'yaml';
import { RECIPES } from '../config/recipes.js';
import { resolveConfig, resolveForLog } from '../config/resolve.js';
import type { Choice } from '../config/rules.js';
import { configJsonSchema } from '../config/schema.js';
import { logStatistics } from '../data/log-statistics.js';
import { SequenceStore } from '../data/store/sequence-store.js';
import { buildDefinition } from '../nn/build.js';
import { SECONDS_PER_DAY } from '../nn/time-bias.js';
import { countParameters } from '../nn/parameter-spec.js';
import { table } from '../util/terminal.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';
import { describeParameters } from './describe.js';

export function configCommand() {
  return withConfigFlags(new Command('config'))
    .description('show the resolved config and its parameter count')
    .option('--schema', 'print the JSON Schema of a config file')
    .option('--recipes', 'list the recipes')
    .option('--explain <store>', 'print the settings chosen for this store, and why')
    .option('--json', 'print the resolved config as JSON')
    .action(async options => {
      const print = (text: string) => process.stdout.write(`${text}\n`);
      if (options.schema) {
        print(JSON.stringify(configJsonSchema(), null, 2));
      } else if (options.recipes) {
        print(Object.keys(RECIPES).join('\n'));
      } else if (options.explain !== undefined) {
        const log = logStatistics(SequenceStore.open(options.explain));
        const { config, choices } = resolveForLog(log, ...(await readConfigFlags(options)));
        print(options.json ? JSON.stringify({ config, choices }) : explain(choices));
      } else {
        const config = resolveConfig(...(await readConfigFlags(options)));
        const blockParameters = countParameters(buildDefinition(config.model, SECONDS_PER_DAY).parameters);
        const text = `${stringify(config)}\n${describeParameters(config.model, blockParameters)}`;
        print(options.json ? JSON.stringify({ config, blockParameters }) : text);
      }
    });
}

function explain(choices: readonly Choice[]): string {
  if (choices.length === 0) return 'nothing is chosen from the log: a recipe or every key is given';
  return table(
    ['key', 'value', 'because'],
    choices.map(({ key, value, reason }) => [key, String(value), reason]),
  );
}
