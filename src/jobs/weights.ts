// Exports a run's weights: one safetensors file with readable names, which Python can read directly. To load them again:
// `train({ initialWeights })` and `openRecommender(run, { weights })`.

import { renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Model } from '../nn/model.js';
import { makeFolder, syncFolder, claimTemporary } from '../util/atomic-file.js';
import { SafetensorsWriter } from '../util/safetensors.js';
import { OpenRun, type OpenRunOptions } from './open-run.js';

/** Writes the chosen weights of a run, atomically. */
export async function exportWeights(run: string, file: string, options: OpenRunOptions = {}): Promise<void> {
  using opened = new OpenRun(run, options);
  makeFolder(dirname(file));
  const temp = claimTemporary(file);
  try {
    await writeWeights(opened.model, temp);
    renameSync(temp, file);
  } catch (error) {
    rmSync(temp, { force: true });
    throw error;
  }
  syncFolder(dirname(file));
}

/** Tensors are read in pieces, so the size of the model does not matter. */
export async function writeWeights(model: Model, file: string): Promise<void> {
  const tensors = model.stored();
  const specs = Object.fromEntries(tensors.map(({ name, dtype, shape }) => [name, { dtype, shape }]));
  const writer = new SafetensorsWriter(file, specs, { format: 'turbogr-weights', model: model.definition.kind });
  try {
    for (const { name, read } of tensors) {
      for await (const piece of read()) writer.append(name, piece);
    }
  } catch (error) {
    writer.abandon();
    throw error;
  }
  writer.close();
}
