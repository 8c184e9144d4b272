// Times steps of several cases and exchanges between the ranks it runs on: `turbogr plan --calibrate` fits its constants to
// these times and checks its predictions against them.

import { gatherJson } from '../../dist/comm/communicator.js';
import { withRanks } from '../../dist/launch/rank-life.js';
import { formGroups } from '../../dist/shard/rank-groups.js';
import { Device } from '../../native/device.js';
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
  exchange: ExchangeSpeed;
}

const TURNS = 3;
const { sizes, seconds }: TimeSpec = JSON.parse(process.argv[2]!);

await withRanks(async ({ world }) => {
  const steps: number[] = [];
  for (const size of sizes) {
    using device = Device.open({ threads: 1 });
    const loop = new StepLoop(device, size, await formGroups(world, size.settings?.groupSize));
    await loop.run(1); // warm-up
    const { wall } = await loop.run(1);
    // Rank 0's clock decides how many steps a round has.
    const [perTurn] = await gatherJson(world, Math.max(1, Math.round(seconds / TURNS / wall)));
    const turns: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) turns.push((await loop.run(perTurn!)).wall / perTurn!);
    const [first] = await gatherJson(world, median(turns));
    steps.push(first!);
  }
  const exchange = await measureExchange(world, 1);
  if (world.rank === 0) process.stdout.write(`${JSON.stringify({ steps, exchange })}\n`);
});
