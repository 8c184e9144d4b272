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
      if (options.schema) return void print(JSON.stringify(configJsonSchema(), null, 2));
      if (options.recipes) return void print(Object.keys(RECIPES).join('\n'));
      const config = resolveConfig(...(await readConfigFlags(options)));
      const { parameters } = buildDefinition(config.model, true);
      if (options.json) return void print(JSON.stringify({ config, blockParameters: countParameters(parameters) }));
      print(`${stringify(config)}\n${describeParameters(config.model, countParameters(parameters))}`);
    });
}
