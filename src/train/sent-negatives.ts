// How the rows of negatives come from the owners of a sharded table: with the lane's other rows, in FP16, or segment by segment
// while the loss computes. All give the same bits.

import type { ResolvedConfig } from '../config/schema.js';
import { drawsWholePool } from '../negatives/negative-sampler.js';
import { fetchesBeside } from '../negatives/segment-size.js';
import { isSmallTable, MOST_CONTRIBUTIONS } from '../ops/embedding-reduce.js';

export interface SentNegatives {
  /** In FP16, once for a lane. */
  readonly halves: boolean;
  /** Segment by segment; then gradients are sent as factors, see factor-sum.ts. */
  readonly segmented: boolean;
}

export interface ShardedTable {
  /** Of the whole table. */
  readonly rows: number;
  readonly width: number;
  readonly owners: number;
  readonly ranks: number;
}

/** Input, positives and negatives. */
const CONTRIBUTIONS_PER_LANE = 3;

export function sentNegatives(config: ResolvedConfig, table: ShardedTable): SentNegatives {
  const { loss, wire, staleness, optimizer, batch } = config;
  const { storage, segment } = loss.negatives;
  // Rows that may be sent again, or are rounded anyway, are sent with the others.
  const apart = wire === 'f32' && staleness === 0 && optimizer.tableStorage === 'f32';
  // A small shard would be summed in another order than the table.
  const small = isSmallTable(Math.floor(table.rows / table.owners), table.width);
  const lanes = Math.ceil(batch.lanes / table.ranks);
  const segmented =
    apart &&
    segment > 0 &&
    !drawsWholePool(loss.negatives) &&
    fetchesBeside(loss.negatives, table) &&
    !small &&
    lanes * CONTRIBUTIONS_PER_LANE <= MOST_CONTRIBUTIONS;
  return { halves: apart && !segmented && storage === 'f16', segmented };
}
