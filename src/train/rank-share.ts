// What one rank updates: its slices of the dense parameters and its rows of sharded tables.

import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { Device } from '../native/device.js';
import { EXACT_WORDS } from '../ops/square-sum.js';
import type { Table } from '../ops/table.js';
import { type Portion, slicesOf } from '../optim/dense-slices.js';
import type { Trained } from '../optim/gradients.js';
import type { RankShare } from '../optim/optimizer.js';

export interface ShareOptions {
  device: Device;
  trained: Trained;
  groups: RankGroups;
  portions: readonly Portion[];
  isDivided: (table: Table) => boolean;
}

export function rankShare({ device, trained, groups, portions, isDivided }: ShareOptions): RankShare {
  const { world, group } = groups;
  const counts = device.from(new BigInt64Array(world.size).fill(BigInt(EXACT_WORDS)));
  return {
    ranks: world.size,
    slices: slicesOf(trained.parameters, portions, world.rank),
    isDivided,
    countsRows: world.rank < group.size,
    gather: (send, receive) => world.allGatherV(device, { send, receive, counts, unit: 1 }),
  };
}
