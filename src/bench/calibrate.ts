// Measurements for the planner: those that its constants are fitted to, and held-out ones to check its predictions. Fitting
// and predicting are in src/plan.

import { NodeSpaces, whyNoNodeSpaces } from '../dist/launch/node-spaces.js';
import type { ExchangeSpeed } from './exchange.js';
import type { RankCase } from './ranks/rank-case.js';
import { runRanks } from './ranks/run-ranks.js';
import type { Timed, TimeSpec } from './ranks/time-program.js';

/** Rate of the links between the simulated nodes. */
export const LINK_BITS = 1e9;
const ROWS = 100_000;

export interface MeasuredCase {
  size: RankCase;
  ranks: number;
  nodes: number;
  seconds: number;
  /** FLOP/s of a core, measured next to it. */
  peak: number;
}

export interface Calibration {
  /** One rank, one thread, one lane. */
  lanes: MeasuredCase[];
  /** Two and four ranks on this host, one lane each. */
  together: MeasuredCase[];
  /** Exchanges between two and between four ranks of this host. */
  two: ExchangeSpeed;
  four: ExchangeSpeed;
  /** Between two ranks on two nodes; absent if nodes cannot be created. */
  link?: ExchangeSpeed;
}

type Sketch = readonly [d: number, blocks: number, tokens: number, pool: number];

const FITTED: readonly Sketch[] = [
  [64, 2, 1024, 256],
  [64, 2, 4096, 1024],
  [128, 2, 2048, 256],
  [128, 4, 4096, 256],
  [128, 2, 2048, 4096],
  [256, 2, 1024, 512],
  [256, 4, 4096, 512],
  [512, 2, 1024, 512],
  [512, 4, 2048, 2048],
];
/** The fitted cases that are also measured on several ranks. */
const TOGETHER = FITTED.filter((_, i) => i % 2 === 0);
/** Held out: none of these is used for the fit. */
const HELD_OUT: readonly Sketch[] = [
  [96, 2, 2048, 512],
  [192, 3, 2048, 1024],
  [384, 2, 1536, 512],
];

function caseOf([d, blocks, tokens, pool]: Sketch, lanes: number): RankCase {
  return { kind: 'hstu', d, blocks, heads: Math.max(1, d >> 6), tokens, rows: ROWS, pool, lanes };
}

async function time(sizes: readonly RankCase[], ranks: number, seconds: number, nodes?: NodeSpaces): Promise<Timed> {
  const spec: TimeSpec = { sizes, seconds };
  return await runRanks<Timed>({ program: 'time-program.js', spec, ranks, nodes });
}

function measuredCases(
  sizes: readonly RankCase[],
  where: Pick<MeasuredCase, 'ranks' | 'nodes'>,
  { steps, peaks }: Timed,
): MeasuredCase[] {
  return sizes.map((size, i) => ({ size, ...where, seconds: steps[i]!, peak: peaks[i]! }));
}

/** Measures each case for `seconds`. */
export async function measureCalibration(seconds: number, tell: (line: string) => void): Promise<Calibration> {
  const sizes = FITTED.map(sketch => caseOf(sketch, 1));
  tell(`${sizes.length} cases on one rank`);
  const lanes = measuredCases(sizes, { ranks: 1, nodes: 1 }, await time(sizes, 1, seconds));
  const several = async (ranks: number) => {
    tell(`${TOGETHER.length} of them, and exchanges, on ${ranks} ranks`);
    const shared = TOGETHER.map(sketch => caseOf(sketch, ranks));
    const timed = await time(shared, ranks, seconds);
    return { cases: measuredCases(shared, { ranks, nodes: 1 }, timed), exchange: timed.exchange };
  };
  const [onTwo, onFour] = [await several(2), await several(4)];
  const measured = {
    lanes,
    together: [...onTwo.cases, ...onFour.cases],
    two: onTwo.exchange,
    four: onFour.exchange,
  };
  const why = whyNoNodeSpaces();
  if (why !== undefined) {
    tell(`no link is measured: ${why}`);
    return measured;
  }
  await using nodes = new NodeSpaces({ nodes: 2, bitsPerSecond: LINK_BITS });
  tell('exchanges over a link of 1 Gbit/s');
  return { ...measured, link: (await time([], 2, seconds, nodes)).exchange };
}

/** Held-out cases, on 1, 2 and 4 ranks, and on 2 nodes of 2 ranks with a link between them. */
export async function measureHeldOut(seconds: number, tell: (line: string) => void): Promise<MeasuredCase[]> {
  const found: MeasuredCase[] = [];
  const measure = async (ranks: number, nodes?: NodeSpaces) => {
    const sizes = HELD_OUT.map(sketch => caseOf(sketch, ranks));
    tell(
      `${sizes.length} other cases on ${ranks === 1 ? 'one rank' : `${ranks} ranks`}${nodes ? ' of two nodes' : ''}`,
    );
    const timed = await time(sizes, ranks, seconds, nodes);
    found.push(...measuredCases(sizes, { ranks, nodes: nodes?.names.length ?? 1 }, timed));
  };
  for (const ranks of [1, 2, 4]) await measure(ranks);
  if (whyNoNodeSpaces() === undefined) {
    await using nodes = new NodeSpaces({ nodes: 2, bitsPerSecond: LINK_BITS });
    await measure(4, nodes);
  }
  return found;
}
