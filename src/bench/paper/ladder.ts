// The ablation ladder: from a padded, unfused, unbalanced, synchronous baseline to the full system, one switch at a time.
// Each lane stands for one rank and is timed alone; the step takes as long as the slowest.
//
// The unfused rungs are sums of two measurements of the same run: the step without its fused attention, and the same
// attention composed of separate ops (unfused-attention.ts).

import { costOf } from '../../dist/balance/cost.js';
import { reallocate } from '../../dist/balance/reallocate.js';
import { Device } from '../../native/device.js';
import { median } from '../measuring.js';
import { drawLengths } from '../random-batch.js';
import { openLearner, type StepCase } from '../step.js';
import { timed } from './attention.js';
import type { PaperRow, Section, SectionOptions } from './row.js';
import { laneBatch, timeLanes } from './time-lanes.js';
import { RandomHead, UnfusedAttention } from './unfused-attention.js';

const RANKS = 4;
const MODEL: StepCase = { kind: 'hstu', d: 256, blocks: 4, heads: 4, tokens: 4096, items: 100_000, table: 'adamw' };

interface Rung {
  name: string;
  padded?: boolean;
  unfused?: boolean;
  balanced?: boolean;
  table: StepCase['table'];
}

const RUNGS: readonly Rung[] = [
  {
    name: 'padded, unfused, unbalanced, synchronous, every row updated',
    padded: true,
    unfused: true,
    table: 'adamw',
  },
  { name: 'jagged: no padding', unfused: true, table: 'adamw' },
  { name: 'fused attention', table: 'adamw' },
  { name: 'only touched table rows updated', table: 'lazy-adam' },
  { name: 'balanced over the ranks', balanced: true, table: 'lazy-adam' },
];

export const ladder: Section = {
  id: 'ladder',
  title: 'The ladder: one switch at a time',
  about: `HSTU of width 256, 4 blocks, 4 heads, 100,000 items, lognormal lengths of mean 200, ${RANKS} ranks of 4,096 tokens on average: microseconds per real token of a rank's step, and the gain over the rung before. Every rank's batch was computed alone on this machine; the step takes as long as the slowest. Unfused: the step minus its fused attention, plus the attention composed of separate ops, both measured. Overlap is measured on whole steps of the same four batches as lanes of one process.`,
  parts: [{ id: 'rungs', measure }],
};

async function measure(options: SectionOptions): Promise<PaperRow[]> {
  const lengths = drawLengths(RANKS * MODEL.tokens);
  const rows: PaperRow[] = [];
  let before: number | undefined;
  for (const rung of RUNGS) {
    const slowest = await measureRung(rung, lengths, options);
    const micros = (1e3 * slowest * RANKS) / lengths.reduce((sum, n) => sum + n, 0);
    rows.push(rowOf(rung.name, micros, before));
    before = micros;
  }
  const [off, on] = await overlapMicros(lengths, options);
  const gain = (rows[0]!.figures!['us_per_token']! / before!) * (off! / on!);
  return [
    ...rows,
    rowOf('the four ranks as lanes of one process, synchronous', off!, undefined),
    rowOf('overlapped: sparse work of one lane while another computes', on!, off),
    { name: 'all switches', ours: `${gain.toFixed(1)}x`, figures: { gain } },
  ];
}

function rowOf(name: string, micros: number, before: number | undefined): PaperRow {
  const gain = before === undefined ? '' : ` (${(before / micros).toFixed(2)}x)`;
  return {
    name,
    ours: `${micros.toFixed(1)} us per token${gain}`,
    figures: { us_per_token: micros },
  };
}

/** Step time of the slowest rank in milliseconds. */
async function measureRung(rung: Rung, lengths: readonly number[], options: SectionOptions): Promise<number> {
  using device = Device.open(options.threads === undefined ? {} : { threads: options.threads });
  const longest = Math.max(...lengths);
  const { learner, definition } = openLearner(device, { ...MODEL, table: rung.table }, longest);
  const cost = costOf(n => definition.flops(n));
  const owner = rung.balanced ? reallocate(Int32Array.from(lengths), RANKS, cost) : dealtInOrder(lengths.length);
  const lanes = Array.from({ length: RANKS }, (_, rank) => {
    const real = lengths.filter((_length, i) => owner[i] === rank);
    return { real, computed: rung.padded ? real.map(() => Math.max(...real)) : real };
  });
  const batches = lanes.map(({ real, computed }) => laneBatch(real, computed, MODEL.items));
  const times = await timeLanes(device, learner, batches, options.quick ? 2 : 7);
  if (!rung.unfused) return Math.max(...times.map(({ step }) => step));
  const totals: number[] = [];
  for (const [rank, { step, attention }] of times.entries()) {
    totals.push(step - attention + (await unfusedMillis(device, lanes[rank]!.computed, longest)));
  }
  return Math.max(...totals);
}

/** Every rank takes the same number of sequences, in order. */
function dealtInOrder(sequences: number): Int32Array {
  return Int32Array.from({ length: sequences }, (_, i) => Math.floor((i * RANKS) / sequences));
}

/** Attention of all blocks and heads of a batch, composed of separate ops. */
async function unfusedMillis(device: Device, lengths: readonly number[], constant: number): Promise<number> {
  const width = MODEL.d / MODEL.heads;
  const counts = new Map<number, number>();
  for (const n of lengths) counts.set(n, (counts.get(n) ?? 0) + 1);
  let total = 0;
  for (const [n, sequences] of counts) {
    using head = new RandomHead(device, n, width);
    using composed = new UnfusedAttention(device, { n, width, constant });
    const heads = sequences * MODEL.blocks * MODEL.heads;
    total += await timed(device, 1, () => {
      for (let h = 0; h < heads; h++) {
        composed.forward(head.inputs, head.out);
        composed.backward(head.inputs, head.out, head.gradients);
      }
    });
  }
  return total;
}

/** Microseconds per token of steps with several lanes in one process, without and with overlap, interleaved. */
async function overlapMicros(lengths: readonly number[], { threads, quick }: SectionOptions): Promise<number[]> {
  using device = Device.open(threads === undefined ? {} : { threads });
  const cases = (['off', 'on'] as const).map(overlap => ({
    ...openLearner(device, { ...MODEL, table: 'lazy-adam', lanes: RANKS, overlap }, Math.max(...lengths)),
    times: [] as number[],
  }));
  const cost = costOf(n => cases[0]!.definition.flops(n));
  const owner = reallocate(Int32Array.from(lengths), RANKS, cost);
  const batches = Array.from({ length: RANKS }, (_, lane) => {
    const real = lengths.filter((_length, i) => owner[i] === lane);
    return laneBatch(real, real, MODEL.items);
  });
  const rounds = quick ? 3 : 10;
  for (let round = 0; round <= rounds; round++) {
    for (const { learner, times } of cases) {
      const start = performance.now();
      const { loss } = await learner.step(batches, { step: 2 + 16 * round, totalSteps: 1000 });
      await loss;
      await device.sync();
      if (round > 0) times.push(performance.now() - start);
    }
  }
  const tokens = lengths.reduce((sum, n) => sum + n, 0);
  return cases.map(({ times }) => (1e3 * median(times)) / tokens);
}
