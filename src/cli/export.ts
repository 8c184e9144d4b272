// `turbogr export`: a run's weights as one safetensors file, the model as a self-contained folder, or ONNX.
import { Command } from '@commander-js/extra-typings';
import { exportBundle } from '../jobs/bundle.js';
import { checkOnnx } from '../jobs/onnx/check-onnx.js';
import { exportOnnx } from '../jobs/onnx/export-onnx.js';
import { exportWeights } from '../jobs/weights.js';
import { UserError } from '../util/errors.js';

export function exportCommand() {
  return new Command('export')
    .description(
      "write a run's chosen weights to a safetensors file, or the model as a self-contained folder or as ONNX",
    )
    .argument('<run>', 'folder of the run')
    .option('--out <file>', 'weights with readable names, such as weights.safetensors')
    .option('--bundle <folder>', 'weights, config and vocabulary: `recommend` works on it without log and store')
    .option('--onnx <folder>', 'encoder and scorer as ONNX, and the ids of the items')
    .option('--check', 'with --onnx: compare with onnxruntime, if installed, and print the largest difference')
    .option('--store <folder>', "the run's sequence store, if it was moved")
    .action(async (run, { out, bundle, onnx, check, store }) => {
      if (out === undefined && bundle === undefined && onnx === undefined) {
        throw new UserError('bad-flag', 'give --out, --bundle or --onnx', 'For example: --out weights.safetensors');
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
            "the run ranks with the log's priors, which a bundle lacks: it ranks by the model alone\n",
          );
        }
        process.stdout.write(`${bundle}\nTry it: npx turbogr recommend ${bundle} --history <item id>\n`);
      }
      if (onnx !== undefined) {
        const { inputs, withoutPriors } = await exportOnnx(run, onnx, opening);
        if (withoutPriors) {
          process.stderr.write(
            "the run ranks with the log's priors, which the scorer lacks: it ranks by the model alone\n",
          );
        }
        process.stdout.write(`${onnx}/encoder.onnx (${inputs.join(', ')}), ${onnx}/scorer.onnx, ${onnx}/items.json\n`);
        if (check) {
          const { histories, state, score } = await checkOnnx(run, onnx, opening);
          const shown = (difference: number): string => difference.toExponential(1);
          process.stdout.write(
            `onnxruntime on ${histories} histories: largest difference ${shown(state)} in states, ${shown(score)} in scores\n`,
          );
        }
      }
    });
}
