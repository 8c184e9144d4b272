// The full softmax over a large catalogue: memory above table and gradient, and its share of the FMA peak.
//
// T tokens, V items, D width.

import { Device } from '../../native/device.js';
import { fullSoftmax } from '../../ops/full-softmax.js';
import { Tape } from '../../ops/tape.js';
import { FmaPeak } from '../measuring.js';
import { randomProblem } from './problem.js';
import type { NegativesRow, NegativesSize } from './row.js';

const [TOKENS, WIDTH] = [4096, 128];

export async function fullSoftmaxRows({ catalogue, threads }: NegativesSize): Promise<NegativesRow[]> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const { u, items, positives } = randomProblem(device, { tokens: TOKENS, width: WIDTH, items: catalogue });
  const peak = new FmaPeak(device, 0.2);
  items.gradTarget(); // the table's own gradient is not the loss's
  await device.sync();
  const before = device.stats().reservedBytes;
  await peak.sample();
  const start = performance.now();
  using tape = new Tape(device, { training: true });
  tape.watch(u);
  const logit = { temperature: 0.05, normalizeUser: true, normalizeItem: true };
  fullSoftmax(tape, u, items, { positives, ...logit });
  await device.sync();
  const seconds = (performance.now() - start) / 1000;
  const used = device.stats().reservedBytes - before;
  await peak.sample();
  const name = `full softmax, ${catalogue} items, D = 128, 4,096 tokens`;
  const rate = (6 * TOKENS * catalogue * WIDTH) / seconds / Math.max(...peak.samples);
  return [
    { name: `${name}: memory above table and gradient`, value: used / 1e6, unit: 'MB' },
    { name: `${name}: useful FLOPs (three products) of the FMA peak`, value: 100 * rate, unit: '%' },
    { name: `${name}: executed FLOPs (four products) of the FMA peak`, value: (400 * rate) / 3, unit: '%' },
  ];
}
