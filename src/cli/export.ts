// `turbogr export`: a run's weights as one safetensors file, or the whole model as a folder that needs nothing else.
import { Command } from '@commander-js/extra-typings';
import { exportBundle } from '../jobs/bundle.js';
import { exportWeights } from '../jobs/weights.js';
import { UserError } from '../util/errors.js';

export function exportCommand() {
  return new Command('export')
    .description("write a run's chosen weights to a safetensors file, or the model as a folder to carry away")
    .argument('<run>', 'folder of the run')
    .option('--out <file>', 'weights with readable names, such as weights.safetensors')
    .option('--bundle <folder>', 'weights, config and vocabulary: `recommend` works on it without log and store')
    .option('--store <folder>', "where the run's sequence store is now, if it was moved")
    .action(async (run, { out, bundle, store }) => {
      if (out === undefined && bundle === undefined) {
        throw new UserError('bad-flag', 'give --out or --bundle', 'For example: --out weights.safetensors');
      }
      const opening = store === undefined ? {} : { store };
      if (out !== undefined) {
        await exportWeights(run, out, opening);
        process.stdout.write(`${out}\n`);
      }
      if (bundle !== undefined) {
        const { withoutPriors } = await exportBundle(run, bundle, opening);
        if (withoutPriors) {
          process.stderr.write(
            "the run ranks with the log's priors, which a bundle has not: it ranks by the model alone\n",
          );
        }
        process.stdout.write(`${bundle}\nTry it: npx turbogr recommend ${bundle} --history <item id>\n`);
      }
    });
}
