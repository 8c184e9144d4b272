// Memory that negatives add to a loss at D = 1024, relative to a materialised tensor of all their rows: rows read in place,
// and rows fetched in FP16, a hundred positions at a time.
//
// T tokens, R negatives per token, D width.

import { Device } from '../../native/device.js';
import { NegativeSegments } from '../../negatives/negative-segments.js';
import { SegmentBuffers } from '../../negatives/segment-buffers.js';
import { drawNegatives } from '../../ops/draw-negatives.js';
import { sampledSoftmax } from '../../ops/sampled-softmax.js';
import { Tape } from '../../ops/tape.js';
import { randomProblem } from './problem.js';
import type { NegativesRow, NegativesSize } from './row.js';

const [WIDTH, ITEMS, SEGMENT] = [1024, 100_000, 100];
const PAPER = [
  [32, '22.21 -> 17.42 GB of the whole'],
  [64, '31.64 -> 23.44 GB'],
  [128, '50.39 -> 34.27 GB (-32 %)'],
] as const;

export async function memoryRows({ tokens, threads }: NegativesSize): Promise<NegativesRow[]> {
  const rows: NegativesRow[] = [];
  // Gradient and unit vectors of the states are needed for the positives too, so the memory with one negative is subtracted.
  const single = await addedBytes({ tokens, count: 1, segment: 0, threads });
  for (const segment of [0, SEGMENT]) {
    for (const [count, paper] of PAPER) {
      const added = (await addedBytes({ tokens, count, segment, threads })) - single;
      const how = segment === 0 ? 'rows where they are' : `FP16 in segments of ${segment}`;
      rows.push({
        name: `memory of the negative path, R = ${count}, D = 1024, ${how}, of the materialised tensor`,
        value: (100 * added) / (4 * tokens * count * WIDTH),
        unit: '%',
        paper,
      });
    }
  }
  return rows;
}

interface Measured {
  tokens: number;
  count: number;
  segment: number;
  threads: number | undefined;
}

async function addedBytes({ tokens, count, segment, threads }: Measured): Promise<number> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const { u, items, positives } = randomProblem(device, { tokens, width: WIDTH, items: ITEMS });
  using tape = new Tape(device, { training: true });
  tape.watch(u);
  await device.sync();
  const before = device.stats().reservedBytes;
  const negatives = tape.own(device.tensor([tokens, count], 'i32'));
  drawNegatives(device, negatives, { seed: 1, step: 0, purpose: 2 }, { kind: 'uniform', count: ITEMS });
  const source = { device, from: items.value, ids: negatives, normalizedEps: 1e-6 } as const;
  const buffers = new SegmentBuffers(device, 'f16');
  const segments =
    segment === 0 ? undefined : tape.own(new NegativeSegments({ ...source, buffers, size: segment, stream: 'sparse' }));
  sampledSoftmax(tape, u, items, { positives, negatives, segments, temperature: 0.05, normalizeItem: true });
  await device.sync();
  return device.stats().reservedBytes - before;
}
