// Times of the lanes of a step, each computed alone on this machine by the trainer's code: with one rank per lane, the step
// takes as long as the slowest.

import type { Device } from '../../native/device.js';
import type { Learner } from '../../train/learner.js';
import type { JaggedBatch } from '../../tensor/jagged.js';
import { median } from '../measuring.js';
import { drawBatch } from '../random-batch.js';

export interface LaneTime {
  /** Milliseconds of the lane's step, and of the attention kernels in it. */
  step: number;
  attention: number;
}

/** `computed`: lengths including padding; tokens beyond `real` are not trained on. */
export function laneBatch(real: readonly number[], computed: readonly number[], items: number): JaggedBatch {
  const batch = drawBatch(computed, items);
  real.forEach((n, s) => batch.target.fill(-1, batch.offsets[s]! + n, batch.offsets[s + 1]));
  return batch;
}

/** Medians of a few rounds over all lanes. The largest lane runs first as a warm-up: its memory suffices for the others. */
export async function timeLanes(
  device: Device,
  learner: Learner,
  lanes: readonly JaggedBatch[],
  rounds: number,
): Promise<LaneTime[]> {
  const timeLane = async (batch: JaggedBatch, round: number): Promise<LaneTime> => {
    await device.sync();
    device.recordSpans(true);
    const start = performance.now();
    // At these step numbers the learner does not count negatives.
    const { loss } = await learner.step([batch], { step: 2 + 16 * round, totalSteps: 1000 });
    await loss;
    await device.sync();
    const step = performance.now() - start;
    const spans = device.spans().spans.filter(({ op }) => op.startsWith('hstu_attention'));
    device.recordSpans(false);
    return { step, attention: spans.reduce((sum, { start: from, end }) => sum + end - from, 0) / 1e3 };
  };
  await timeLane(lanes.toSorted((a, b) => b.item.length - a.item.length)[0]!, 0);
  const samples = lanes.map((): LaneTime[] => []);
  for (let round = 1; round <= rounds; round++) {
    for (const [lane, batch] of lanes.entries()) samples[lane]!.push(await timeLane(batch, round));
  }
  return samples.map(taken => ({
    step: median(taken.map(({ step }) => step)),
    attention: median(taken.map(({ attention }) => attention)),
  }));
}
