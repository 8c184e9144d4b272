// Where the rows of a model's items are: all here, or divided over the ranks of a group.

import type { Communicator } from '../dist/comm/communicator.js';
import { SingleRank } from '../dist/comm/single-rank.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { Model } from '../nn/model.js';
import type { RowShard } from '../util/row-shard.js';

export interface ItemPlace {
  /** The rows that are kept here. */
  readonly shard: RowShard;
  /** The ranks that have all rows together. */
  readonly group: Communicator;
}

const ALONE = new SingleRank();

export function placeOf(model: Model, ranks: RankGroups): ItemPlace {
  const { shard } = model.items;
  return { shard, group: shard.count > 1 ? ranks.group : ALONE };
}
