// Times steps of several cases and exchanges between the ranks it runs on: `turbogr plan --calibrate` fits its constants to
// these times and checks its predictions against them.

import { type Communicator, gatherJson } from '../../dist/comm/communicator.js';
import { withRanks } from '../../dist/launch/rank-life.js';
import { formGroups } from '../../dist/shard/rank-groups.js';
import { Device } from '../../native/device.js';
import { measurePeak } from '../../jobs/measure-peak.js';
import { type ExchangeSpeed, measureExchange } from '../exchange.js';
import { median } from '../measuring.js';
import type { RankCase } from './rank-case.js';
import { StepLoop } from './step-loop.js';

export interface TimeSpec {
  sizes: readonly RankCase[];
  /** Approximate seconds per case. */
  seconds: number;
}

/** What rank 0 prints. */
export interface Timed {
  /** Seconds per step, by case, at the peak below: the median of a few rounds, each normalised by the peak measured before it. */
  steps: number[];
  /** FLOP/s of rank 0's core, measured before each round of a case while the other ranks are idle; the median. */
  peaks: number[];
  exchange: ExchangeSpeed;
}

const ROUNDS = 5;
const { sizes, seconds }: TimeSpec = JSON.parse(process.argv[2]!);

await withRanks(async ({ world }) => {
  using device = Device.open({ threads: 1 });
  const cases = [];
  for (const size of sizes) {
    const loop = new StepLoop(device, size, await formGroups(world, size.settings?.groupSize));
    await loop.run(1); // warm-up
    const { wall } = await loop.run(1);
    // Rank 0's clock decides how many steps a round has.
    const [count] = await gatherJson(world, Math.max(1, Math.round(seconds / ROUNDS / wall)));
    cases.push({ loop, count: count!, peaks: [] as number[], flops: [] as number[] });
  }
  // All cases in every round: a moment in which the machine is slower changes one round of several cases, not all of one.
  for (let round = 0; round < ROUNDS; round++) {
    for (const { loop, count, peaks, flops } of cases) {
      const peak = await peakBeside(world, device);
      peaks.push(peak);
      flops.push(((await loop.run(count)).wall / count) * peak);
    }
  }
  const peaks = cases.map(one => median(one.peaks));
  const steps = cases.map(({ flops }, i) => median(flops) / peaks[i]!);
  const exchange = await measureExchange(world, 1);
  if (world.rank === 0) process.stdout.write(`${JSON.stringify({ steps, peaks, exchange })}\n`);
});

/** The peak of rank 0's core, on all ranks. */
async function peakBeside(world: Communicator, device: Device): Promise<number> {
  await gatherJson(world, 'idle');
  const [peak] = await gatherJson(world, world.rank === 0 ? await measurePeak(device) : 0);
  return peak!;
}
