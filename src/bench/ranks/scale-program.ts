// What each of two ranks runs for `turbogr bench scale`: one rank alone, both as independent copies, and both together,
// interleaved in the same processes, so that fluctuations of the machine affect all three alike.

import { gatherJson } from '../../dist/comm/communicator.js';
import { withRanks } from '../../dist/launch/rank-life.js';
import { formGroups, singleGroup } from '../../dist/shard/rank-groups.js';
import { Device } from '../../native/device.js';
import type { RankCase } from './rank-case.js';
import { StepLoop } from './step-loop.js';
import type { TurnTimes } from './turn-shares.js';

export interface ScaleSpec {
  /** Without `lanes`, which is the number of ranks. */
  size: Omit<RankCase, 'lanes'>;
  /** Steps per round, and rounds of each kind. */
  steps: number;
  turns: number;
}

/** What rank 0 prints. Times are per round. */
export interface ScaleTimes {
  alone: TurnTimes[];
  /** By round and rank. */
  copies: TurnTimes[][];
  together: TurnTimes[][];
}

const { size, steps, turns }: ScaleSpec = JSON.parse(process.argv[2]!);

await withRanks(async ({ world }) => {
  using device = Device.open({ threads: 1 });
  const copy = new StepLoop(device, { ...size, lanes: 1 }, singleGroup());
  const joint = new StepLoop(device, { ...size, lanes: world.size }, await formGroups(world, size.settings?.groupSize));
  const times: ScaleTimes = { alone: [], copies: [], together: [] };
  // Each round begins on all ranks at once; idle ranks sleep.
  const turn = async (loop: StepLoop, ranks: number): Promise<TurnTimes[]> => {
    await gatherJson(world, 'ready');
    const own = world.rank < ranks ? await loop.run(steps) : null;
    return (await gatherJson(world, own)).filter(time => time !== null);
  };
  await turn(copy, world.size); // warm-up
  await turn(joint, world.size);
  for (let i = 0; i < turns; i++) {
    times.alone.push(...(await turn(copy, 1)));
    // In alternating order, so that a machine that becomes faster or slower favours neither.
    const first = await turn(i % 2 === 0 ? joint : copy, world.size);
    const second = await turn(i % 2 === 0 ? copy : joint, world.size);
    const [together, copies] = i % 2 === 0 ? [first, second] : [second, first];
    times.together.push(together);
    times.copies.push(copies);
  }
  if (world.rank === 0) process.stdout.write(`${JSON.stringify(times)}\n`);
});
