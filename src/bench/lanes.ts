// `turbogr bench lanes`: the same sequences as one lane and as several smaller ones. Whole training steps of the trainer's
// code, interleaved in one process so that both see the same machine conditions.

import { Command } from '@commander-js/extra-typings';
import { resolveConfig } from '../config/resolve.js';
import { Device } from '../native/device.js';
import { buildDefinition } from '../nn/build.js';
import { SECONDS_PER_DAY } from '../nn/time-bias.js';
import type { JaggedBatch } from '../tensor/jagged.js';
import { Learner } from '../train/learner.js';
import { countNumber } from '../util/number-flags.js';
import { formatCount, table } from '../util/terminal.js';
import { median } from './measuring.js';
import { drawBatch, drawLengths } from './random-batch.js';

const ITEMS = 10_000;
/** Warm-up steps of each kind. */
const WARM = 2;
/** Tiny steps before those: meanwhile V8 still compiles the enqueueing code, which takes cores. */
const COMPILE = 60;
const FEW = 16;

interface LanesOptions {
  d: number;
  blocks: number;
  heads: number;
  lanes: number;
  /** Tokens per lane. */
  tokens: number;
  /** Measured steps of each kind. */
  steps: number;
  threads?: number | undefined;
}

export interface LanesReport {
  lanes: number;
  tokens_per_lane: number;
  /** Tokens per second, median over steps. */
  one_lane: number;
  several_lanes: number;
  /** several_lanes / one_lane, median over pairs of consecutive steps. */
  ratio: number;
}

export function benchLanesCommand() {
  return new Command('lanes')
    .description('tokens per second with one large lane and with several small ones, on the same sequences')
    .option('--d <width>', 'model width', countNumber, 256)
    .option('--blocks <count>', 'blocks', countNumber, 4)
    .option('--heads <count>', 'attention heads', countNumber, 4)
    .option('--lanes <count>', 'number of small lanes', countNumber, 8)
    .option('--tokens <count>', 'tokens per small lane', countNumber, 2048)
    .option('--steps <count>', 'measured steps of each kind', countNumber, 20)
    .option('--threads <count>', 'number of threads (default: all cores)', countNumber)
    .option('--json', 'print one JSON object')
    .action(async ({ json, ...options }) => {
      const report = await benchLanes(options);
      process.stdout.write(`${json ? JSON.stringify(report) : describe(report)}\n`);
    });
}

export async function benchLanes({ lanes, tokens, steps, threads, ...model }: LanesOptions): Promise<LanesReport> {
  const lengths = drawLengths(tokens);
  const longest = Math.max(...lengths);
  using device = Device.open(threads === undefined ? {} : { threads });
  const learner = (count: number): Learner => {
    const config = resolveConfig({
      model: { kind: 'hstu', ...model, maxLength: longest },
      loss: { negatives: { count: 128 } },
      optimizer: { table: 'lazy-adam' },
      batch: { tokens: (tokens * lanes) / count, lanes: count },
    });
    const definition = buildDefinition(config.model, SECONDS_PER_DAY);
    const { dropout, maxLength } = config.model;
    const shape = { definition, items: ITEMS, positions: maxLength + 1, dropout, actions: 0, sideFeatures: [] };
    const counts = new Int32Array(ITEMS).fill(1);
    return new Learner({ device, config, shape: { ...shape, scoring: config.loss }, counts });
  };
  const all = drawBatch(Array.from({ length: lanes }, () => lengths).flat(), ITEMS);
  const small = Array.from({ length: lanes }, (_, lane) => part(all, lane * lengths.length, lengths.length));
  const [one, several] = [learner(1), learner(lanes)];
  const few = drawBatch([FEW], ITEMS);
  const totalSteps = COMPILE + WARM + steps;
  for (let step = 1; step <= COMPILE; step++) {
    await seconds(device, () => one.step([few], { step, totalSteps }));
    await seconds(device, () =>
      several.step(
        Array.from({ length: lanes }, () => few),
        { step, totalSteps },
      ),
    );
  }
  const rates: [one: number[], several: number[]] = [[], []];
  for (let step = 1; step <= WARM + steps; step++) {
    const place = { step: COMPILE + step, totalSteps };
    const timed = [
      await seconds(device, () => one.step([all], place)),
      await seconds(device, () => several.step(small, place)),
    ];
    if (step > WARM) rates.forEach((list, i) => list.push((lanes * tokens) / timed[i]!));
  }
  const ratios = rates[1].map((rate, i) => rate / rates[0][i]!);
  return {
    lanes,
    tokens_per_lane: tokens,
    one_lane: median(rates[0]),
    several_lanes: median(rates[1]),
    ratio: median(ratios),
  };
}

async function seconds(device: Device, step: () => Promise<{ loss: Promise<number> }>): Promise<number> {
  const start = performance.now();
  const { loss } = await step();
  await loss;
  await device.sync();
  return (performance.now() - start) / 1000;
}

/** Sequences `[first, first + count)` of a batch. */
function part(batch: ReturnType<typeof drawBatch>, first: number, count: number): JaggedBatch {
  const [from, to] = [batch.offsets[first]!, batch.offsets[first + count]!];
  return {
    offsets: batch.offsets.slice(first, first + count + 1).map(offset => offset - from),
    item: batch.item.slice(from, to),
    target: batch.target.slice(from, to),
    time: batch.time.slice(from, to),
    nextTime: batch.nextTime.slice(from, to),
  };
}

function describe({ lanes, tokens_per_lane, one_lane, several_lanes, ratio }: LanesReport): string {
  const rows = [
    ['1', formatCount(lanes * tokens_per_lane), formatCount(Math.round(one_lane))],
    [formatCount(lanes), formatCount(tokens_per_lane), formatCount(Math.round(several_lanes))],
  ];
  return [table(['lanes', 'tokens per lane', 'tokens/s'], rows), '', `ratio ${ratio.toFixed(3)}`].join('\n');
}
