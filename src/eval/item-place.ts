// Location of a model's item rows: all local, or sharded over the ranks of a group.

import type { Communicator } from '../dist/comm/communicator.js';
import { SingleRank } from '../dist/comm/single-rank.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { Model } from '../nn/model.js';
import type { RowShard } from '../util/row-shard.js';

export interface ItemPlace {
  /** This rank's rows. */
  readonly shard: RowShard;
  /** The ranks that together have all rows. */
  readonly group: Communicator;
}

const ALONE = new SingleRank();

export function placeOf(model: Model, ranks: RankGroups): ItemPlace {
  const { shard } = model.items;
  return { shard, group: shard.count > 1 ? ranks.group : ALONE };
}
