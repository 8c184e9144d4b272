// A table of many million rows in FP16 with one accumulator per row: shows that it trains on this machine, the time of a
// step, and the memory of the process.

import { resolveConfig } from '../../config/resolve.js';
import { Device } from '../../native/device.js';
import { buildDefinition } from '../../nn/build.js';
import { SECONDS_PER_DAY } from '../../nn/time-bias.js';
import { Learner } from '../../train/learner.js';
import { median } from '../measuring.js';
import { drawBatch, drawLengths } from '../random-batch.js';
import type { NegativesRow, NegativesSize } from './row.js';

const WIDTH = 128;

export async function tableRows({ tableRows: items, tokens, steps, threads }: NegativesSize): Promise<NegativesRow[]> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const lengths = drawLengths(tokens);
  const config = resolveConfig({
    model: { d: WIDTH, blocks: 2, heads: 4, maxLength: Math.max(...lengths) },
    optimizer: { table: 'row-adagrad', tableStorage: 'f16', lr: 1e-3, tableLr: 0.02 },
    batch: { tokens },
  });
  const { maxLength, dropout } = config.model;
  const definition = buildDefinition(config.model, SECONDS_PER_DAY);
  const features = { actions: 0, sideFeatures: [], scoring: config.loss };
  const shape = { definition, items, positions: maxLength + 1, dropout, ...features };
  const learner = new Learner({ device, config, shape, counts: new Int32Array(items).fill(1) });
  await device.sync();
  const held = Object.values(learner.held()).reduce((sum, bytes) => sum + bytes, 0);
  const batch = drawBatch(lengths, items);
  const [times, losses]: [number[], number[]] = [[], []];
  for (let step = 1; step <= steps; step++) {
    const start = performance.now();
    losses.push(await (await learner.step([batch], { step, totalSteps: steps })).loss);
    await device.sync();
    times.push(performance.now() - start);
  }
  const name = `table of ${items} x ${WIDTH} in FP16`;
  return [
    { name: `${name}: weights and optimiser state`, value: held / 1e9, unit: 'GB' },
    { name: `${name}: resident memory of the process`, value: process.memoryUsage.rss() / 1e9, unit: 'GB' },
    { name: `${name}: step of ${tokens} tokens`, value: median(times), unit: 'ms' },
    { name: `${name}: loss of step 1`, value: losses[0]!, unit: '' },
    { name: `${name}: loss of step ${steps}, the same batch`, value: losses.at(-1)!, unit: '' },
  ];
}
