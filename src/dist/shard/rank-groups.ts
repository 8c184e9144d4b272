// Ranks in groups of equal size: each group holds all rows of a sharded table, one shard per rank. Owners of the same shard
// in different groups are peers: they replicate the same rows.

import { UserError } from '../../util/errors.js';
import { type RowShard, WHOLE } from '../../util/row-shard.js';
import { type Communicator, gatherJson } from '../comm/communicator.js';
import { SingleRank } from '../comm/single-rank.js';

export interface RankGroups {
  readonly world: Communicator;
  /** This rank's group, in the order of the shards. */
  readonly group: Communicator;
  /** The owners of the same shard, one per group. */
  readonly peers: Communicator;
  readonly shard: RowShard;
  /** All ranks, for figures that are gathered independently of other messages. */
  readonly figures: Communicator;
}

/** One rank on its own. */
export function singleGroup(): RankGroups {
  const world = new SingleRank();
  return { world, group: world, peers: world, shard: WHOLE, figures: world };
}

/** Collective. `size`: ranks of a group; default: the ranks of a node, if all nodes have equally many. */
export async function formGroups(world: Communicator, size?: number): Promise<RankGroups> {
  // Splitting blocks the thread that sends heartbeats until all ranks are there.
  await gatherJson(world, 'here');
  const ranks = size ?? (await ranksPerNode(world));
  if (ranks > world.size || world.size % ranks !== 0) {
    const sizes = Array.from({ length: world.size }, (_, i) => i + 1).filter(n => world.size % n === 0);
    throw new UserError(
      'group-size',
      `${world.size} ranks cannot be divided into groups of ${ranks}`,
      `Give --group-size ${sizes.join(' or ')}, or another number of ranks.`,
    );
  }
  const index = world.rank % ranks;
  const group = world.split(Math.floor(world.rank / ranks), world.rank);
  const peers = world.split(index, world.rank);
  return { world, group, peers, shard: { index, count: ranks }, figures: world.split(0, world.rank) };
}

/** Ranks per node if all nodes have equally many consecutive ranks; otherwise all ranks form one group. */
async function ranksPerNode(world: Communicator): Promise<number> {
  const node = world.node();
  const [first] = await gatherJson(node, world.rank);
  const nodes = await gatherJson(world, { first: first!, size: node.size });
  const even = nodes.every(({ first: start, size }, rank) => size === node.size && start === rank - (rank % size));
  const agreed = await gatherJson(world, even);
  return agreed.every(Boolean) ? node.size : world.size;
}
