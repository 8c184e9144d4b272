// Weights out of a run: one safetensors file with readable names, which Python reads as it is. They come back by
// `train({ initialWeights })` and `openRecommender(run, { weights })`.

import { SafetensorsWriter } from '../util/safetensors.js';
import { OpenRun, type OpenRunOptions } from './open-run.js';

/** Writes the weights that validation chose. Tensors are read one at a time, so the size of the model does not matter. */
export async function exportWeights(run: string, file: string, options: OpenRunOptions = {}): Promise<void> {
  using opened = new OpenRun(run, options);
  const tensors = opened.model.stored();
  const specs = Object.fromEntries(tensors.map(({ name, dtype, shape }) => [name, { dtype, shape }]));
  const writer = new SafetensorsWriter(file, specs, { format: 'turbogr-weights', model: opened.config.model.kind });
  try {
    for (const { name, read } of tensors) writer.append(name, await read());
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.close();
}
