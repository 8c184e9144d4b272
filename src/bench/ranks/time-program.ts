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
  /** Seconds per step, by case: median of a few rounds. */
  steps: number[];
  /** FLOP/s of rank 0's core, measured before each round of a case while the other ranks are idle; the median. */
  peaks: number[];
  exchange: ExchangeSpeed;
}

const TURNS = 3;
const { sizes, seconds }: TimeSpec = JSON.parse(process.argv[2]!);

await withRanks(async ({ world }) => {
  const [steps, peaks]: [number[], number[]] = [[], []];
  for (const size of sizes) {
    using device = Device.open({ threads: 1 });
    const loop = new StepLoop(device, size, await formGroups(world, size.settings?.groupSize));
    await loop.run(1); // warm-up
    const { wall } = await loop.run(1);
    // Rank 0's clock decides how many steps a round has.
    const [perTurn] = await gatherJson(world, Math.max(1, Math.round(seconds / TURNS / wall)));
    const turns: number[] = [];
    const found: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      found.push(await peakBeside(world, device));
      turns.push((await loop.run(perTurn!)).wall / perTurn!);
    }
    const [first] = await gatherJson(world, { step: median(turns), peak: median(found) });
    steps.push(first!.step);
    peaks.push(first!.peak);
  }
  const exchange = await measureExchange(world, 1);
  if (world.rank === 0) process.stdout.write(`${JSON.stringify({ steps, peaks, exchange })}\n`);
});

/** The peak of rank 0's core, on all ranks. */
async function peakBeside(world: Communicator, device: Device): Promise<number> {
  await gatherJson(world, 'idle');
  const [peak] = await gatherJson(world, world.rank === 0 ? await measurePeak(device) : 0);
  return peak!;
}
