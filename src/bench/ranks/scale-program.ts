// What each of two ranks runs for `turbogr bench scale`: by turns one rank alone, both as copies that know nothing of each
// other, and both together. In the same processes and minutes, so that the machine's own ups and downs meet all three.

import { gatherJson } from '../../dist/comm/communicator.js';
import { withRanks } from '../../dist/launch/rank-life.js';
import { formGroups, singleGroup } from '../../dist/shard/rank-groups.js';
import { Device } from '../../native/device.js';
import type { RankCase } from './rank-case.js';
import { StepLoop } from './step-loop.js';
import type { TurnTimes } from './turn-shares.js';

export interface ScaleSpec {
  /** A lane per rank is added to it. */
  size: Omit<RankCase, 'lanes'>;
  /** Steps of a turn, and turns of each kind. */
  steps: number;
  turns: number;
}

/** What rank 0 prints. Times are of a turn. */
export interface ScaleTimes {
  alone: TurnTimes[];
  /** By turn and rank. */
  copies: TurnTimes[][];
  together: TurnTimes[][];
}

const { size, steps, turns }: ScaleSpec = JSON.parse(process.argv[2]!);

await withRanks(async ({ world }) => {
  using device = Device.open({ threads: 1 });
  const copy = new StepLoop(device, { ...size, lanes: 1 }, singleGroup());
  const joint = new StepLoop(device, { ...size, lanes: world.size }, await formGroups(world, size.settings?.groupSize));
  const times: ScaleTimes = { alone: [], copies: [], together: [] };
  // Each turn begins on all ranks at once; those without work in it wait, asleep.
  const turn = async (loop: StepLoop, ranks: number): Promise<TurnTimes[]> => {
    await gatherJson(world, 'ready');
    const own = world.rank < ranks ? await loop.run(steps) : null;
    return (await gatherJson(world, own)).filter(time => time !== null);
  };
  await turn(copy, world.size); // caches and memory warm up
  await turn(joint, world.size);
  for (let i = 0; i < turns; i++) {
    times.alone.push(...(await turn(copy, 1)));
    times.together.push(await turn(joint, world.size));
    times.copies.push(await turn(copy, world.size));
  }
  if (world.rank === 0) process.stdout.write(`${JSON.stringify(times)}\n`);
});
