// `turbogr export`: a run's weights as one safetensors file.
import { Command } from '@commander-js/extra-typings';
import { exportWeights } from '../recipes/weights.js';

export function exportCommand() {
  return new Command('export')
    .description("write a run's chosen weights to a safetensors file with readable names")
    .argument('<run>', 'folder of the run')
    .requiredOption('--out <file>', 'file to write, such as weights.safetensors')
    .action(async (run, { out }) => {
      await exportWeights(run, out);
      process.stdout.write(`${out}\n`);
    });
}
