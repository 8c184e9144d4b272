// Cost constants of a machine, measured by `turbogr plan --calibrate` and stored in a JSON file.
//
// Seconds of a lane on one core = block FLOPs / rate + block FLOPs / D * narrow + loss FLOPs * loss + row bytes * rows +
// dense parameters * update + lane, for a given FMA peak of the core. Seconds of an exchange = latency + peers * peer +
// bytes / rate.

import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { UserError } from '../util/errors.js';

const seconds = z.number().nonnegative();
const exchange = z.strictObject({
  /** Seconds of an empty exchange, and of each peer beyond the first. */
  latency: seconds,
  peer: seconds,
  /** Bytes per second sent by a rank. */
  rate: z.number().positive(),
});

export const COSTS = z.strictObject({
  machine: z.string(),
  compute: z.strictObject({
    flop: seconds,
    /** Overhead of narrow models: seconds per (FLOP / D). */
    narrow: seconds,
    lossFlop: seconds,
    /** Seconds per byte of rows that are staged, reduced and updated. */
    rowByte: seconds,
    /** Seconds to update one dense parameter. */
    parameter: seconds,
    lane: seconds,
  }),
  /** FMA peak of a core during these measurements, FLOP/s. */
  peak: z.number().positive(),
  /** When ranks share a host, by ranks per core, ascending: slow-down of computing, and seconds added to each step. */
  crowding: z.array(z.strictObject({ perCore: z.number().positive(), factor: z.number().positive(), step: seconds })),
  /** Between ranks of a host. */
  memory: exchange,
  /** Between hosts: achieved share of the link's nominal rate. */
  link: exchange.omit({ rate: true }).extend({ share: z.number().positive().max(1) }),
});

export type Costs = z.infer<typeof COSTS>;
export type ExchangeCosts = z.infer<typeof exchange>;

/** The costs at another peak: clocks and neighbours change it from minute to minute. */
export function atPeak(costs: Costs, peak: number): Costs {
  const slower = costs.peak / peak;
  const { flop, narrow, lossFlop, rowByte, parameter, lane } = costs.compute;
  const compute = {
    flop: flop * slower,
    narrow: narrow * slower,
    lossFlop: lossFlop * slower,
    rowByte: rowByte * slower,
    parameter: parameter * slower,
    lane: lane * slower,
  };
  return { ...costs, peak, compute };
}

export function readCosts(path: string): Costs {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    const remedy = `Measure this machine: npx turbogr plan --calibrate ${path}`;
    throw new UserError('no-costs', `${path} cannot be read as JSON`, remedy, { cause });
  }
  const found = COSTS.safeParse(json);
  if (found.success) return found.data;
  const [issue] = found.error.issues;
  const message = `${path}: ${issue?.path.join('.')} ${issue?.message}`;
  throw new UserError('bad-costs', message, `Measure again: npx turbogr plan --calibrate ${path}`);
}
