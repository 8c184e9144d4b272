// What an epoch costs, roughly and the same on every machine: forward and backward are six FLOPs per weight and token.
//
// V items, D model width, L blocks, N longest sequence, R negatives of a token.

import type { LogStatistics } from './log-statistics.js';
import type { Config } from './schema.js';

/** Useful FLOPs in a minute on two cores of the machine in docs/results.md; what a budget in minutes is counted in. */
export const FLOPS_PER_MINUTE = 2.7e12;

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
  const scored = cost.loss.kind === 'full-softmax' ? log.items : cost.loss.negatives.count;
  return epochTokens(log, cost) * 6 * (blocks * (5 * d ** 2 + d * maxLength) + scored * d);
}
