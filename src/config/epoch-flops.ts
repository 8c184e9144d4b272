// Estimated cost of an epoch, the same on every machine: six FLOPs per weight and token for forward and backward. Only matrix
// products count; gathered rows count as the product that takes equally long.
//
// V items, D model width, L blocks, N longest sequence, R negatives per token.

import type { LogStatistics } from './log-statistics.js';
import type { Config } from './schema.js';

/** Converts a budget in minutes: useful FLOPs per minute on two cores of the machine in docs/results.md, half of the idle rate. */
export const FLOPS_PER_MINUTE = 2.7e12;

/**
 * Cost of one drawn negative in items of a full softmax: its row is read for a single token, and its gradient is added to the
 * table row by row. Measured: 6.6 with 20,000 items, 8.2 with 130,000 (docs/LOG.md).
 */
export const DRAWN = 7;

export interface EpochCost {
  model: Pick<Config['model'], 'd' | 'blocks' | 'maxLength'>;
  loss: { kind: Config['loss']['kind']; negatives: { count: number } };
  window: Config['window'];
}

/** Next-event pairs that an epoch trains on. */
export function epochTokens(log: LogStatistics, { model, window }: Omit<EpochCost, 'loss'>): number {
  return window === 'latest' ? log.pairsWithin(model.maxLength) : log.events - log.users;
}

export function epochFlops(log: LogStatistics, cost: EpochCost): number {
  const { d, blocks, maxLength } = cost.model;
  const scored = cost.loss.kind === 'full-softmax' ? log.items : DRAWN * cost.loss.negatives.count;
  return epochTokens(log, cost) * 6 * (blocks * (5 * d ** 2 + d * maxLength) + scored * d);
}
