// `turbogr bench negatives`: what negatives cost in memory, time and look-ups, plain, shared and from a pool, beside the
// TurboGR paper's figures; and the full softmax over a large catalogue.
//
// T tokens, D width, R negatives per token, k sharing factor, P rows of a pool, V items. Steps are the trainer's own, taken
// from all settings, interleaved; the time of an op is the sum of its recorded spans.

import { Command } from '@commander-js/extra-typings';
import { resolveConfig } from '../config/resolve.js';
import type { ConfigInput } from '../config/schema.js';
import { Device } from '../native/device.js';
import { buildDefinition } from '../nn/build.js';
import { SECONDS_PER_DAY } from '../nn/time-bias.js';
import { drawNegatives } from '../ops/draw-negatives.js';
import { fillNormal } from '../ops/fill.js';
import { fullSoftmax } from '../ops/full-softmax.js';
import { sampledSoftmax } from '../ops/sampled-softmax.js';
import { Table } from '../ops/table.js';
import { Tape } from '../ops/tape.js';
import { Learner } from '../train/learner.js';
import { countNumber } from '../util/number-flags.js';
import { table } from '../util/terminal.js';
import { FmaPeak, median } from './measuring.js';
import { drawBatch, drawLengths } from './random-batch.js';

export interface NegativesRow {
  name: string;
  value: number;
  unit: string;
  /** What the paper reports for the same thing, where it does. */
  paper?: string;
}

interface NegativesSize {
  d: number;
  blocks: number;
  tokens: number;
  items: number;
  steps: number;
  catalogue: number;
  threads?: number | undefined;
}

type NegativesInput = NonNullable<NonNullable<ConfigInput['loss']>['negatives']>;

const SETTINGS = {
  'R = 128': { count: 128 },
  'R = 64': { count: 64 },
  'R = 64, k = 2': { count: 64, sharing: { factor: 2 } },
  'R = 32': { count: 32 },
  'R = 32, k = 4': { count: 32, sharing: { factor: 4 } },
  'pool 8,192, R = 128': { count: 128, pool: 8192 },
} as const satisfies Record<string, NegativesInput>;
type Setting = keyof typeof SETTINGS;
const NAMES: readonly Setting[] = [
  'R = 128',
  'R = 64',
  'R = 64, k = 2',
  'R = 32',
  'R = 32, k = 4',
  'pool 8,192, R = 128',
];

/** Ops that bring negatives to the loss. */
const PATH = new Set(['draw_negatives', 'draw_pool', 'share_negatives', 'mask_negatives', 'unique_ids', 'stage_rows']);
/** Ops that compute with them. */
const LOSS = new Set(['sampled_softmax', 'shared_loss', 'pooled_loss']);

export function benchNegativesCommand() {
  return new Command('negatives')
    .description('memory, time and look-ups of negatives, plain, shared and pooled; the full softmax')
    .option('--d <width>', 'model width of the steps', countNumber, 256)
    .option('--blocks <count>', 'HSTU blocks of the steps', countNumber, 2)
    .option('--tokens <count>', 'tokens of a step', countNumber, 8192)
    .option('--items <count>', 'items of the steps', countNumber, 200_000)
    .option('--steps <count>', 'steps of each setting', countNumber, 5)
    .option('--catalogue <count>', 'items of the full softmax', countNumber, 1_000_000)
    .option('--threads <count>', 'all cores by default', countNumber)
    .option('--json', 'one JSON object')
    .action(async ({ json, ...size }) => {
      const rows = await benchNegatives(size);
      process.stdout.write(`${json ? JSON.stringify({ ...size, rows }) : describe(rows)}\n`);
    });
}

export async function benchNegatives(size: NegativesSize): Promise<NegativesRow[]> {
  return [...(await memoryRows(size)), ...(await stepRows(size)), ...(await fullSoftmaxRows(size))];
}

/** Memory that the loss adds to states and table at D = 1024, against a tensor of all negatives' rows. */
async function memoryRows({ tokens, threads }: NegativesSize): Promise<NegativesRow[]> {
  const [width, items] = [1024, 20_000];
  const rows: NegativesRow[] = [];
  for (const [count, paper] of [
    [32, '22.21 -> 17.42 GB of the whole'],
    [64, '31.64 -> 23.44 GB'],
    [128, '50.39 -> 34.27 GB (-32 %)'],
  ] as const) {
    using device = Device.open(threads === undefined ? {} : { threads });
    const { u, items: rowsOfTable, positives } = randomProblem(device, { tokens, width, items });
    using tape = new Tape(device, { training: true });
    tape.watch(u);
    await device.sync();
    const before = device.stats().reservedBytes;
    const negatives = tape.own(device.tensor([tokens, count], 'i32'));
    drawNegatives(device, negatives, { seed: 1, step: 0, purpose: 2 }, { kind: 'uniform', count: items });
    sampledSoftmax(tape, u, rowsOfTable, { positives, negatives, temperature: 0.05, normalizeItem: true });
    await device.sync();
    // The gradient of the states is there without negatives too.
    const added = device.stats().reservedBytes - before - 4 * tokens * width;
    const materialised = 4 * tokens * count * width;
    rows.push({
      name: `memory of the negative path, R = ${count}, D = 1024, of the materialised tensor`,
      value: (100 * added) / materialised,
      unit: '%',
      paper,
    });
  }
  return rows;
}

interface Timed {
  /** Median microseconds of a step and of its parts. */
  step: number;
  path: number;
  loss: number;
  update: number;
}

async function stepRows(size: NegativesSize): Promise<NegativesRow[]> {
  using device = Device.open(size.threads === undefined ? {} : { threads: size.threads });
  const lengths = drawLengths(size.tokens);
  const batch = drawBatch(lengths, size.items);
  const learners = NAMES.map(name => {
    const samples: Timed[] = [];
    return { name, learner: makeLearner(device, size, Math.max(...lengths), SETTINGS[name]), samples };
  });
  for (let round = 0; round <= size.steps; round++) {
    for (const { learner, samples } of learners) {
      device.recordSpans(true);
      // Step 2 of every 16 counts nothing.
      await (await learner.step([batch], { step: 2 + 16 * round, totalSteps: 1000 })).loss;
      await device.sync();
      const { spans } = device.spans();
      device.recordSpans(false);
      if (round === 0) continue; // warm-up
      const of = (ops: ReadonlySet<string>): number =>
        spans.filter(span => ops.has(span.op)).reduce((sum, span) => sum + span.end - span.start, 0);
      const ends = spans.map(span => span.end);
      samples.push({
        step: Math.max(...ends) - Math.min(...spans.map(span => span.start)),
        path: of(PATH),
        loss: of(LOSS),
        update: of(new Set(['embedding_update', 'embedding_reduce'])),
      });
    }
  }
  const timed = new Map(
    learners.map(({ name, samples }): [Setting, Timed] => {
      const of = (part: keyof Timed): number => median(samples.map(sample => sample[part]));
      return [name, { step: of('step'), path: of('path'), loss: of('loss'), update: of('update') }];
    }),
  );
  const at = (name: Setting): Timed => timed.get(name)!;
  const cost = (name: Setting): number => at(name).loss + at(name).update;
  const ratio = (shared: Setting, real: Setting, more: Setting): number =>
    (100 * (cost(shared) - cost(real))) / (cost(more) - cost(real));
  return [
    ...learners.flatMap(({ name }): NegativesRow[] => [
      { name: `step, ${name}`, value: at(name).step / 1000, unit: 'ms' },
      { name: `loss and table update, ${name}, of the step`, value: (100 * cost(name)) / at(name).step, unit: '%' },
      { name: `look-ups per token, ${name}`, value: lookups(SETTINGS[name], size.tokens), unit: 'rows' },
    ]),
    {
      name: 'loss alone, R = 128, of the step',
      value: (100 * at('R = 128').loss) / at('R = 128').step,
      unit: '%',
      paper: 'over 30 %',
    },
    {
      name: 'draws, shuffles and staging, R = 128, of the step',
      value: (100 * at('R = 128').path) / at('R = 128').step,
      unit: '%',
    },
    {
      name: 'extra logits of R = 64, k = 2, of as many gathered negatives',
      value: ratio('R = 64, k = 2', 'R = 64', 'R = 128'),
      unit: '%',
    },
    {
      name: 'extra logits of R = 32, k = 4, of as many gathered negatives',
      value: ratio('R = 32, k = 4', 'R = 32', 'R = 128'),
      unit: '%',
    },
  ];
}

/** Rows that a token asks the table for, positives aside. */
function lookups({ count = 0, pool = 0 }: NegativesInput, tokens: number): number {
  return pool > 0 ? pool / tokens : count;
}

function makeLearner(device: Device, size: NegativesSize, longest: number, negatives: NegativesInput): Learner {
  const { d, blocks, tokens, items } = size;
  const config = resolveConfig({
    model: { d, blocks, heads: 4, maxLength: longest },
    loss: { negatives },
    optimizer: { table: 'lazy-adam' },
    batch: { tokens },
  });
  const definition = buildDefinition(config.model, SECONDS_PER_DAY);
  const { maxLength, dropout } = config.model;
  const shape = {
    definition,
    items,
    positions: maxLength + 1,
    dropout,
    actions: 0,
    sideFeatures: [],
    scoring: config.loss,
  };
  return new Learner({ device, config, shape, counts: new Int32Array(items).fill(1) });
}

async function fullSoftmaxRows({ catalogue, threads }: NegativesSize): Promise<NegativesRow[]> {
  const [tokens, width] = [4096, 128];
  using device = Device.open(threads === undefined ? {} : { threads });
  const { u, items, positives } = randomProblem(device, { tokens, width, items: catalogue });
  const peak = new FmaPeak(device, 0.2);
  items.gradTarget(); // the table's own gradient is not the loss's
  await device.sync();
  const before = device.stats().reservedBytes;
  await peak.sample();
  const start = performance.now();
  using tape = new Tape(device, { training: true });
  tape.watch(u);
  const logit = { temperature: 0.05, normalizeUser: true, normalizeItem: true };
  fullSoftmax(tape, u, items, { positives, ...logit });
  await device.sync();
  const seconds = (performance.now() - start) / 1000;
  const used = device.stats().reservedBytes - before;
  await peak.sample();
  const name = `full softmax, ${catalogue} items, D = 128, 4,096 tokens`;
  const rate = (6 * tokens * catalogue * width) / seconds / Math.max(...peak.samples);
  return [
    { name: `${name}: memory above table and gradient`, value: used / 1e6, unit: 'MB' },
    { name: `${name}: useful FLOPs (three products) of the FMA peak`, value: 100 * rate, unit: '%' },
    { name: `${name}: executed FLOPs (four products) of the FMA peak`, value: (400 * rate) / 3, unit: '%' },
  ];
}

function randomProblem(device: Device, size: { tokens: number; width: number; items: number }) {
  const { tokens, width, items } = size;
  const value = device.tensor([items, width]);
  fillNormal(device, value, { seed: 1, step: 0, purpose: 0 }, { std: 1 });
  const u = device.tensor([tokens, width]);
  fillNormal(device, u, { seed: 1, step: 0, purpose: 1 }, { std: 1 });
  const positives = device.from(Int32Array.from({ length: tokens }, (_, t) => (t * 97) % items));
  return { u, items: new Table(device, 'items', value), positives };
}

function describe(rows: readonly NegativesRow[]): string {
  return table(
    ['', 'value', 'unit', 'paper'],
    rows.map(({ name, value, unit, paper = '' }) => [name, value.toFixed(2), unit, paper]),
  );
}
