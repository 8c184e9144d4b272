// The relative time bias of a block, shared by HSTU and FuXi: its weights and the options for attention.
//
//   buckets  a table over the logarithm of the gap: `timeBuckets` entries and one for larger gaps
//   power    alpha * gamma^(T^beta), T = gap in days (FuXi-gamma): alpha, beta and gamma learned, no table
//
// Every bucket except the last spans 0.301 * 128 / timeBuckets in the natural logarithm of the gap, so fewer buckets are
// wider and cover the same range.

import type { ModelConfig } from '../config/schema.js';
import type { RelativeOptions } from '../ops/relative-attention.js';
import { normal, type ParameterSpec, values, vector } from './parameter-spec.js';
import type { Weights } from './definition.js';

/** `ticksPerDay` of a log whose times are in seconds. */
export const SECONDS_PER_DAY = 86_400;

/** Initial values: alpha of the magnitude of initial table entries, beta = 1, gamma = 0.8 (FuXi-gamma's best on video). */
const ALPHA = 0.02;
const BETA_WEIGHT = Math.log(Math.E - 1); // softplus of it is 1
const GAMMA_WEIGHT = Math.log(0.8 / 0.2); // sigmoid of it is 0.8

export interface TimeBias {
  /** Parameter spec of block l. */
  spec(l: number): ParameterSpec;
  /** Options for attention in block l. */
  options(l: number, weights: Weights): Pick<RelativeOptions, 'tsW' | 'timeUnit'>;
}

/** `ticksPerDay`: units of the log's timestamps per day; undefined if it has none. */
export function timeBias(config: ModelConfig, ticksPerDay: number | undefined): TimeBias | undefined {
  if (ticksPerDay === undefined || config.timeBias === 'off') return undefined;
  const name = (l: number): string => `blocks.${l}.ts_w`;
  if (config.timeBias === 'power') {
    return {
      spec: l => vector(name(l), 3, values(ALPHA, BETA_WEIGHT, GAMMA_WEIGHT)),
      options: (l, weights) => ({ tsW: weights(name(l)), timeUnit: ticksPerDay }),
    };
  }
  return {
    spec: l => vector(name(l), config.timeBuckets + 1, normal(0.02)),
    options: (l, weights) => ({ tsW: weights(name(l)) }),
  };
}
