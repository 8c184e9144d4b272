// Does the same job in many ways, one after the other: on some of the ranks, in groups of a size. Rank 0 prints a line of JSON
// for each way: its name and what the job found.
import { gatherJson } from '../../../dist/dist/comm/communicator.js';
import { joinRanks } from '../../../dist/dist/launch/join-ranks.js';
import { formGroups } from '../../../dist/dist/shard/rank-groups.js';

/** `job(groups, way)` for every way: { name, ranks, groupSize, ... }. */
export async function eachWay(ways, job) {
  const ranks = joinRanks();
  /** Groups by ranks and size: an MPI has room for so many communicators. */
  const made = new Map();
  for (const way of ways) {
    const { name, ranks: count, groupSize } = way;
    const takesPart = ranks.world.rank < count;
    const key = `${count}/${groupSize}`;
    if (!made.has(key)) {
      const world = ranks.world.split(takesPart ? 0 : 1, ranks.world.rank);
      made.set(key, takesPart ? await formGroups(world, groupSize) : undefined);
    }
    if (takesPart) {
      const found = await job(made.get(key), way);
      if (ranks.world.rank === 0) process.stdout.write(`${JSON.stringify({ name, ...found })}\n`);
    }
    await gatherJson(ranks.world, name); // nobody runs ahead: communicators are made in one order
  }
  ranks.close();
}
