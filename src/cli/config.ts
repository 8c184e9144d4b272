// `turbogr config`: what a config comes to, before anything runs; the list of recipes; the JSON Schema for editors.
import { Command } from '@commander-js/extra-typings';
import { stringify } from 'yaml';
import { RECIPES } from '../config/recipes.js';
import { resolveConfig } from '../config/resolve.js';
import { configJsonSchema } from '../config/schema.js';
import { buildDefinition } from '../nn/build.js';
import { countParameters } from '../nn/parameter-spec.js';
import { readConfigFlags, withConfigFlags } from './config-flags.js';
import { describeParameters } from './describe.js';

export function configCommand() {
  return withConfigFlags(new Command('config'))
    .description('show what a config comes to, with its parameter count')
    .option('--schema', 'print the JSON Schema of a config file')
    .option('--recipes', 'list the recipes')
    .option('--json', 'print the resolved config as JSON')
    .action(async options => {
      const print = (text: string) => process.stdout.write(`${text}\n`);
      if (options.schema) {
        print(JSON.stringify(configJsonSchema(), null, 2));
      } else if (options.recipes) {
        print(Object.keys(RECIPES).join('\n'));
      } else {
        const config = resolveConfig(...(await readConfigFlags(options)));
        const blockParameters = countParameters(buildDefinition(config.model, true).parameters);
        const text = `${stringify(config)}\n${describeParameters(config.model, blockParameters)}`;
        print(options.json ? JSON.stringify({ config, blockParameters }) : text);
      }
    });
}
