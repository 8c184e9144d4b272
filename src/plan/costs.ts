// What work costs on a machine: constants that `turbogr plan --calibrate` measures and keeps in a JSON file.
//
// Seconds of a lane on one core = block FLOPs / rate + block FLOPs / D * narrow + loss FLOPs * loss + row bytes * rows +
// dense parameters * update + lane. Seconds of an exchange = latency + peers * peer + bytes / rate.

import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { UserError } from '../util/errors.js';

const seconds = z.number().nonnegative();
const exchange = z.strictObject({
  /** Seconds of an exchange that moves nothing, and of each peer beyond the first. */
  latency: seconds,
  peer: seconds,
  /** Bytes per second that leave a rank. */
  rate: z.number().positive(),
});

export const COSTS = z.strictObject({
  machine: z.string(),
  compute: z.strictObject({
    flop: seconds,
    /** More for narrow models: per FLOP and 1 / D. */
    narrow: seconds,
    lossFlop: seconds,
    /** Of a byte of rows: staged, reduced and updated. */
    rowByte: seconds,
    /** Of a dense parameter's update. */
    parameter: seconds,
    lane: seconds,
  }),
  /** Between ranks of a host. */
  memory: exchange,
  /** Between hosts: of the link's nominal rate, how much is reached. */
  link: exchange.omit({ rate: true }).extend({ share: z.number().positive().max(1) }),
});

export type Costs = z.infer<typeof COSTS>;
export type ExchangeCosts = z.infer<typeof exchange>;

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
