// `turbogr bench step`: whole training steps of the trainer's own code (embedding, blocks with position and time bias,
// sampled softmax, table update, AdamW) on random jagged batches, as a share of the FMA peak measured between the steps.
//
//   mfu        useful work: real tokens, causal half, as the model's definition counts its FLOPs
//   mfu_paper  the TurboGR paper's counting: attention not halved (nn/paper-flops.ts)
import { Command, Option } from '@commander-js/extra-typings';
import { resolveConfig } from '../config/resolve.js';
import type { ConfigInput, ResolvedConfig } from '../config/schema.js';
import { Device } from '../native/device.js';
import { buildDefinition } from '../nn/build.js';
import type { ModelDefinition } from '../nn/definition.js';
import { paperFlops } from '../nn/paper-flops.js';
import { SECONDS_PER_DAY } from '../nn/time-bias.js';
import { Learner } from '../train/learner.js';
import { UserError } from '../util/errors.js';
import { countNumber } from '../util/number-flags.js';
import { formatCount, formatShare, table } from '../util/terminal.js';
import { FmaPeak, median } from './measuring.js';
import { drawBatch, drawLengths } from './random-batch.js';

export interface StepCase {
  kind: 'hstu' | 'fuxi' | 'sasrec';
  d: number;
  blocks: number;
  heads: number;
  tokens: number;
  /** Length of every sequence; default: lognormal lengths of mean 200. */
  length?: number;
  items: number;
  /** Rows that a step updates: all, or those with a gradient. */
  table: 'adamw' | 'lazy-adam';
  outputSlots?: number;
  /** Pads every sequence to the longest, as padded frameworks do; padding is not trained on. */
  padded?: boolean;
  timeBias?: 'buckets' | 'power';
  timeBuckets?: 32 | 128;
  /** Of a step of several batches. */
  lanes?: number;
  overlap?: 'on' | 'off';
}

const USUAL: StepCase = { kind: 'hstu', d: 256, blocks: 4, heads: 4, tokens: 8192, items: 10_000, table: 'lazy-adam' };

const PAPER_SIZES = {
  tiny: { d: 128, blocks: 2, tokens: 16_384 },
  small: { d: 256, blocks: 4, tokens: 16_384 },
  medium: { d: 512, blocks: 8, tokens: 8192 },
  large: { d: 1024, blocks: 16, tokens: 4096 },
  long: { d: 1024, blocks: 16, tokens: 4096 },
};

/** The paper's models, `hstu-tiny` to `fuxi-long`, as the recipes `paper-hstu-tiny` to `paper-fuxi-long` have them. */
export const PAPER_PRESETS: Record<string, StepCase> = Object.fromEntries(
  (['hstu', 'fuxi'] as const).flatMap(kind =>
    Object.entries(PAPER_SIZES).map(([size, shape]): [string, StepCase] => {
      const length = size === 'long' ? 4096 : 2048;
      const bias =
        kind === 'hstu'
          ? ({ timeBias: 'buckets', timeBuckets: 32, outputSlots: 0 } as const)
          : ({ timeBias: 'power', outputSlots: 4096 - length } as const);
      return [`${kind}-${size}`, { ...USUAL, ...shape, ...bias, kind, heads: 8, length }];
    }),
  ),
);

/** A model of the paper by name, such as `fuxi-long`. */
export function paperCase(model: string): StepCase {
  const found = PAPER_PRESETS[model];
  if (!found) throw new Error(`the paper has no model ${model}`);
  return found;
}

/** The default model at a given width. */
export function widthCase(d: number): StepCase {
  return { ...USUAL, d, heads: headsOf(d) };
}

const PRESETS: Record<string, Partial<StepCase>> = {
  'ml-1m': { d: 50, blocks: 2, heads: 1, tokens: 16_384, items: 3883, table: 'adamw' },
  d256: {},
  d512: widthCase(512),
  d1024: widthCase(1024),
  ...PAPER_PRESETS,
};

/** Seconds; steps that take longer are warmed up by one, others by two. */
const LONG_STEP = 2;
/** Seconds of steps to measure, and the most steps. */
const MEASURED = 10;
const MOST_STEPS = 30;
/** About 5 ms of one core. */
const BUSY_ROUNDS = 500_000;

export interface StepReport {
  kind: string;
  d: number;
  blocks: number;
  heads: number;
  /** Tokens computed, and those that are not padding. */
  tokens: number;
  real_tokens: number;
  sequences: number;
  longest: number;
  threads: number;
  isa: string;
  /** Parameters of the blocks. */
  parameters: number;
  steps: number;
  step_ms: number;
  mfu: number;
  mfu_paper: number;
  tokens_per_s: number;
  gflops: number;
  /** Median FMA peak of the same threads, measured before every step. */
  peak_gflops: number;
  peak_rss_mb: number;
  /** Native calls to enqueue a step, time per call, and their share of the step. */
  crossings: number;
  crossing_us: number;
  crossing_share: number;
  /** Total JavaScript time to enqueue a step: these calls, memory, uploads, the tape. */
  enqueue_ms: number;
}

export function benchStepCommand() {
  return new Command('step')
    .description('whole training steps as a share of the FMA peak')
    .addOption(new Option('--preset <name>', 'a predefined case').choices(Object.keys(PRESETS)))
    .addOption(new Option('--kind <model>', 'architecture').choices(['hstu', 'fuxi', 'sasrec'] as const))
    .option('--d <width>', 'model width', countNumber)
    .option('--blocks <count>', 'blocks', countNumber)
    .option('--heads <count>', 'attention heads', countNumber)
    .option('--tokens <count>', 'tokens per batch', countNumber)
    .option('--length <events>', 'fixed sequence length (default: lognormal, mean 200)', countNumber)
    .option('--items <count>', 'catalogue', countNumber)
    .option('--threads <count>', 'number of threads (default: all cores)', countNumber)
    .option('--steps <count>', 'number of measured steps; the median is reported', countNumber)
    .option('--json', 'one JSON object')
    .action(async ({ json, preset, threads, steps, ...given }) => {
      const chosen = { ...USUAL, ...(preset && PRESETS[preset]) };
      if (given.d !== undefined && given.heads === undefined && !preset) chosen.heads = headsOf(given.d);
      const report = await benchStep({ ...chosen, ...given }, { threads, steps });
      process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${describe(report)}\n`);
    });
}

export interface StepOptions {
  threads?: number | undefined;
  steps?: number | undefined;
}

export async function benchStep(size: StepCase, options: StepOptions = {}): Promise<StepReport> {
  if (size.d % size.heads !== 0) {
    const message = `${size.heads} heads do not divide a width of ${size.d}`;
    throw new UserError('bad-heads', message, 'Choose --heads and --d so that they do.');
  }
  const real = drawLengths(size.tokens, size.length);
  const lengths = size.padded ? real.map(() => Math.max(...real)) : real;
  using device = Device.open(options.threads === undefined ? {} : { threads: options.threads });
  const { learner, definition } = openLearner(device, size, Math.max(...lengths));
  const sum = (value: (n: number) => number): number => lengths.reduce((total, n) => total + value(n), 0);
  const parameters = definition.parameters.reduce((total, spec) => total + spec.rows * spec.cols, 0);
  const work = { useful: sum(n => definition.flops(n)), paper: sum(paperFlops({ ...size, parameters })!) };
  const batch = drawBatch(lengths, size.items);
  real.forEach((n, s) => batch.target.fill(-1, batch.offsets[s]! + n, batch.offsets[s + 1]));
  let [step, crossings] = [0, 0];
  /** Seconds of a whole step, and those until it was enqueued. */
  const measure = async () => {
    const calls = commands(device);
    const start = performance.now();
    const { loss } = await learner.step([batch], { step: ++step, totalSteps: MOST_STEPS });
    const enqueued = performance.now();
    await loss;
    await device.sync();
    crossings = commands(device) - calls;
    return { seconds: (performance.now() - start) / 1000, enqueueing: enqueued - start };
  };
  // The first step also touches its memory for the first time: at D=1024 it takes 4.7 s, the following ones 3.0 s.
  let { seconds: guess } = await measure();
  if (guess < LONG_STEP) guess = (await measure()).seconds;
  const count = options.steps ?? Math.max(2, Math.min(MOST_STEPS, Math.round(MEASURED / guess)));
  // The peak is sampled long enough to see the same disturbances as the steps that are compared with it.
  const peak = new FmaPeak(device, Math.min(1, Math.max(0.01, guess / 5)));
  const steps: Awaited<ReturnType<typeof measure>>[] = [];
  while (steps.length < count) {
    await peak.sample();
    steps.push(await measure());
  }
  const crossing = await crossingSeconds();
  const time = median(steps.map(({ seconds }) => seconds));
  const peakFlops = median(peak.samples);
  const { threads, isa } = device.stats();
  return {
    kind: size.kind,
    d: size.d,
    blocks: size.blocks,
    heads: size.heads,
    tokens: sum(n => n),
    real_tokens: size.tokens,
    sequences: lengths.length,
    longest: Math.max(...lengths),
    threads,
    isa,
    parameters,
    steps: count,
    step_ms: time * 1e3,
    mfu: work.useful / time / peakFlops,
    mfu_paper: work.paper / time / peakFlops,
    tokens_per_s: sum(n => n) / time,
    gflops: work.useful / time / 1e9,
    peak_gflops: peakFlops / 1e9,
    peak_rss_mb: process.resourceUsage().maxRSS / 1024,
    crossings,
    crossing_us: crossing * 1e6,
    crossing_share: (crossings * crossing) / time,
    enqueue_ms: median(steps.map(({ enqueueing }) => enqueueing)),
  };
}

/** The most heads of width 64 or more that divide the model width. */
function headsOf(d: number): number {
  let heads = Math.max(1, d >> 6);
  while (d % heads !== 0) heads--;
  return heads;
}

/** A learner for batches whose sequences have at most `longest` tokens. */
export function openLearner(
  device: Device,
  size: StepCase,
  longest: number,
): { learner: Learner; definition: ModelDefinition } {
  const config = stepConfig(size, longest);
  const definition = buildDefinition(config.model, SECONDS_PER_DAY);
  const shape = { definition, items: size.items, positions: config.model.maxLength + 1, dropout: config.model.dropout };
  const learner = new Learner({
    device,
    config,
    shape: { ...shape, actions: 0, sideFeatures: [], scoring: config.loss },
    counts: new Int32Array(size.items).fill(1),
  });
  return { learner, definition };
}

function stepConfig(size: StepCase, longest: number): ResolvedConfig {
  const { kind, d, blocks, heads, outputSlots = 1, timeBias = 'buckets', timeBuckets = 128 } = size;
  const input: ConfigInput = {
    model: { kind, d, blocks, heads, maxLength: longest, outputSlots, timeBias, timeBuckets },
    loss: { negatives: { count: 128 } },
    optimizer: { table: size.table },
    batch: { tokens: Math.max(8192, longest), lanes: size.lanes ?? 1 },
    overlap: size.overlap ?? 'on',
  };
  return resolveConfig(input);
}

function commands(device: Device): number {
  return device.stats().commands.reduce((sum, count) => sum + count, 0);
}

/**
 * JavaScript time to enqueue one op while an earlier op computes, as in a step: a call to an idle stream would include waking
 * its thread. One compute thread, so that JavaScript has its own core.
 */
async function crossingSeconds(): Promise<number> {
  using device = Device.open({ threads: 1 });
  const [x, y] = [device.from(new Float32Array(8)), device.from(new Float32Array(8))];
  const busy = device.tensor([1, 2], 'i64');
  const rounds: number[] = [];
  const calls = 500;
  for (let round = 0; round < 20; round++) {
    await device.sync();
    device.call('fma_peak').number(BUSY_ROUNDS).tensor(busy).submit();
    const start = performance.now();
    for (let i = 0; i < calls; i++) device.call('add').number(0).tensor(x).tensor(y).submit();
    rounds.push((performance.now() - start) / 1000 / calls);
  }
  await device.sync();
  return median(rounds);
}

function describe(report: StepReport): string {
  const { kind, d, blocks, heads } = report;
  const rows = [
    ['model', `${kind}, width ${d}, ${blocks} blocks, ${heads} heads, ${formatCount(report.parameters)} parameters`],
    ['batch', `${formatCount(report.tokens)} tokens, ${report.sequences} sequences, longest ${report.longest}`],
    ['threads', `${report.threads} (${report.isa})`],
    [
      'step',
      `${report.step_ms.toFixed(1)} ms, median of ${report.steps}; ${formatCount(report.tokens_per_s)} tokens/s`,
    ],
    ['useful work', `${report.gflops.toFixed(1)} GFLOP/s of ${report.peak_gflops.toFixed(1)} (FMA peak, same run)`],
    ['mfu', `${formatShare(report.mfu)} useful: real tokens, causal half`],
    ['mfu_paper', `${formatShare(report.mfu_paper)} as the TurboGR paper counts: attention not halved`],
    ['peak memory', `${formatCount(report.peak_rss_mb)} MB resident`],
    [
      'crossings',
      `${report.crossings} calls of ${report.crossing_us.toFixed(2)} us: ${formatShare(report.crossing_share)} of the step; enqueueing in total ${report.enqueue_ms.toFixed(2)} ms`,
    ],
  ];
  return table(['', ''], rows).trim();
}
