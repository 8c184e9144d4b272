// `turbogr bench scale`: weak scaling from one to two single-threaded ranks, with the same tokens per rank. Two copies without
// communication give the machine's limit: they share caches, memory bandwidth and, in a virtual machine, cores.
//
//   efficiency     step time of one rank / step time of two ranks, with the same tokens per rank
//   limit          the same for two copies, until both are done
//   of_limit       step time of the two copies / step time of the two ranks, of consecutive rounds
//   compute_ratio, exposed_comm, wait, free    shares of the two ranks' time (docs/clusters.md)

import { Command, Option } from '@commander-js/extra-typings';
import type { ConfigInput } from '../config/schema.js';
import { buildDefinition } from '../nn/build.js';
import { SECONDS_PER_DAY } from '../nn/time-bias.js';
import { countNumber } from '../util/number-flags.js';
import { formatCount, formatShare, table } from '../util/terminal.js';
import { median } from './measuring.js';
import { configOf, lengthsOf } from './ranks/rank-case.js';
import { runRanks } from './ranks/run-ranks.js';
import type { ScaleSpec, ScaleTimes } from './ranks/scale-program.js';
import { type TurnShares, turnShares } from './ranks/turn-shares.js';
import { PAPER_PRESETS, type StepCase, widthCase } from './step.js';

export interface ScaleRow extends TurnShares {
  model: string;
  d: number;
  /** Per rank. */
  tokens: number;
  efficiency: number;
  limit: number;
  /** Median over pairs of consecutive rounds, since the machine's speed changes from minute to minute. */
  of_limit: number;
}

/** Rows of the table: at least a million in published figures. */
const ROWS = 1_000_000;
const QUICK: ScaleOptions = { rows: 100_000, turns: 2, turnSeconds: 0.2, stepSeconds: 0.1 };
/** Negatives that a lane draws, shared by its tokens. */
const POOL = 1024;
const RANKS = 2;
/** Many short rounds rather than few long ones: what is compared is a few seconds apart. */
const TURNS = 7;
const TURN_SECONDS = 8;

const MODELS: Readonly<Record<string, StepCase>> = {
  'hstu-512': widthCase(512),
  'hstu-1024': widthCase(1024),
  ...PAPER_PRESETS,
};
const USUAL = ['hstu-512', 'hstu-1024', 'hstu-tiny', 'hstu-small', 'hstu-medium'];

const FEWEST_TOKENS = 1024;

export function benchScaleCommand() {
  return new Command('scale')
    .description('two single-threaded ranks compared with one, and with two copies that do not communicate')
    .addOption(new Option('--model <name...>', 'models to measure (default: a selection)').choices(Object.keys(MODELS)))
    .option('--turns <count>', 'rounds of each kind, interleaved', countNumber, TURNS)
    .option('--rows <count>', 'rows of the item table', countNumber)
    .option('--quick', 'a smaller table and few short rounds: a smoke test, not a measurement')
    .option('--json', 'one JSON object')
    .action(async ({ model = USUAL, turns, rows, quick = false, json }) => {
      const found = await benchScale(model, quick ? QUICK : { turns, rows });
      process.stdout.write(json ? `${JSON.stringify({ rows: found })}\n` : `${describe(found)}\n`);
    });
}

export interface ScaleOptions {
  /** Of the item table. */
  rows?: number | undefined;
  turns?: number;
  /** Approximate seconds of a round and limit for one step, assuming 50 GFLOP/s per core: large models get fewer tokens. */
  turnSeconds?: number;
  stepSeconds?: number;
}

/** Models by the names of `MODELS`. */
export async function benchScale(models: readonly string[], options: ScaleOptions): Promise<ScaleRow[]> {
  const found: ScaleRow[] = [];
  for (const name of models) {
    const spec = specOf(MODELS[name]!, options);
    process.stderr.write(`${name}: ${spec.turns} turns of ${spec.steps} steps\n`);
    found.push(rowOf(name, spec, await runRanks({ program: 'scale-program.js', spec, ranks: RANKS })));
  }
  return found;
}

function specOf(model: StepCase, options: ScaleOptions): ScaleSpec {
  const { rows = ROWS, turns = TURNS, turnSeconds = TURN_SECONDS, stepSeconds = 6 } = options;
  const { kind, d, blocks, heads, length, timeBias = 'buckets', timeBuckets = 128 } = model;
  const settings: ConfigInput = { model: { timeBias, timeBuckets } };
  const size: ScaleSpec['size'] = { kind, d, blocks, heads, tokens: model.tokens, rows, pool: POOL, settings };
  if (length !== undefined) size.length = length;
  const seconds = () => stepFlops(size) / 50e9;
  while (seconds() > stepSeconds && size.tokens / 2 >= (length ?? FEWEST_TOKENS)) size.tokens /= 2;
  return { size, steps: Math.max(1, Math.round(turnSeconds / seconds())), turns };
}

/** Forward and backward of a step on one rank: the blocks, and each token against the pool. */
function stepFlops(size: ScaleSpec['size']): number {
  const lane = { ...size, lanes: 1 };
  const definition = buildDefinition(configOf(lane).model, SECONDS_PER_DAY);
  const blocks = lengthsOf(lane).reduce((sum, length) => sum + definition.flops(length), 0);
  return blocks + 6 * size.tokens * size.d * size.pool;
}

export function rowOf(model: string, { size }: ScaleSpec, { alone, copies, together }: ScaleTimes): ScaleRow {
  const one = median(alone.map(({ wall }) => wall));
  /** Of a round: until both ranks are done. */
  const both = (turn: readonly { wall: number }[]) => Math.max(...turn.map(({ wall }) => wall));
  return {
    model,
    d: size.d,
    tokens: size.tokens,
    efficiency: one / median(together.map(both)),
    limit: one / median(copies.map(both)),
    of_limit: median(copies.map((turn, i) => both(turn) / both(together[i]!))),
    ...turnShares(together),
  };
}

function describe(rows: readonly ScaleRow[]): string {
  const cells = rows.map(row => [
    row.model,
    String(row.d),
    formatCount(row.tokens),
    row.efficiency.toFixed(3),
    row.limit.toFixed(3),
    row.of_limit.toFixed(3),
    ...[row.compute_ratio, row.exposed_comm, row.wait, row.free].map(share => formatShare(share, 1)),
  ]);
  return [
    table(['model', 'D', 'tokens', 'efficiency', 'limit', 'of it', 'computing', 'exposed', 'waiting', 'free'], cells),
    '',
    'Two single-threaded ranks compared with one, with the same tokens per rank; limit: two copies without communication.',
    'All three interleaved in the same processes; medians over the rounds. Of it: median over pairs of consecutive rounds.',
  ].join('\n');
}
