// The training problem of the rank benchmarks: one of the paper's models or a given width, a large table with Zipf-distributed
// reads, and the batch of any lane, the same on every rank.
//
// T tokens of a lane, D width, V rows of the table.

import { resolveConfig } from '../../config/resolve.js';
import type { ConfigInput, ResolvedConfig } from '../../config/schema.js';
import type { RankGroups } from '../../dist/shard/rank-groups.js';
import type { Device } from '../../native/device.js';
import { buildDefinition } from '../../nn/build.js';
import { SECONDS_PER_DAY } from '../../nn/time-bias.js';
import type { JaggedBatch } from '../../tensor/jagged.js';
import { Learner } from '../../train/learner.js';
import { drawLengths, drawPopularBatch } from '../random-batch.js';
import type { StepCase } from '../step.js';

export interface RankCase extends Pick<StepCase, 'kind' | 'd' | 'blocks' | 'heads' | 'tokens'> {
  length?: number;
  /** V. */
  rows: number;
  /** Rows that a lane draws as negatives; each token is scored against all of them. */
  pool: number;
  lanes: number;
  /** Further settings, such as `groupSize` and `staleness`. */
  settings?: ConfigInput;
}

/** All lanes have the same lengths, so they cost the same. */
export function lengthsOf({ tokens, length }: RankCase): number[] {
  return drawLengths(tokens, length);
}

export function configOf(size: RankCase): ResolvedConfig {
  const { kind, d, blocks, heads, tokens, pool, lanes, settings = {} } = size;
  const base: ConfigInput = {
    model: { kind, d, blocks, heads, maxLength: Math.max(...lengthsOf(size)) },
    loss: { negatives: { count: pool, pool } },
    // One number of optimiser state per row: with Adam's moments the largest cases would not fit into memory.
    optimizer: { table: 'row-adagrad' },
    batch: { tokens, lanes },
  };
  return resolveConfig(base, settings);
}

export function learnerOf(device: Device, size: RankCase, groups: RankGroups): Learner {
  const config = configOf(size);
  const definition = buildDefinition(config.model, SECONDS_PER_DAY);
  const { maxLength, dropout } = config.model;
  const shape = { definition, items: size.rows, positions: maxLength + 1, dropout };
  return new Learner({
    device,
    config,
    shape: { ...shape, actions: 0, sideFeatures: [], scoring: config.loss },
    counts: new Int32Array(size.rows).fill(1),
    groups,
  });
}

/** The batch of a lane at a step: different rows every time, as in training. */
export function laneBatch(size: RankCase, step: number, lane: number): JaggedBatch {
  return drawPopularBatch(lengthsOf(size), size.rows, step * size.lanes + lane);
}
