// A training step as the planner sees it: FLOPs of a lane, rows it reads, memory it needs. Derived from a config and either
// a store's statistics or a few numbers about the log.
//
// T tokens of a lane, D width, V rows of the item table, R negatives.

import type { ResolvedConfig } from '../config/schema.js';
import { buildDefinition } from '../nn/build.js';

/** What the planner needs to know about a log. */
export interface LogShape {
  /** V. */
  items: number;
  /** Lengths of a sample of training windows. */
  lengths: readonly number[];
  /** Occurrences of each item, in any order; default: Zipf's law over V. */
  counts?: ArrayLike<number>;
  /** Ticks of the log's clock in a day. */
  ticksPerDay?: number | undefined;
}

export interface Workload {
  tokens: number;
  width: number;
  blocks: number;
  rows: number;
  /** FLOPs of a lane, forward and backward: blocks, and loss. */
  blockFlops: number;
  lossFlops: number;
  denseParameters: number;
  /** Number of dense tensors: each is reduced by separate exchanges. */
  denseTensors: number;
  /** Whether all gradients are clipped by their common norm. */
  clips: boolean;
  /** Floats of optimiser state per row. */
  rowState: number;
  /** Bytes per element of fetched rows; gradients are f32. */
  fetchedBytes: number;
  /** Activations that a token saves for backward, in floats per unit of width and block. */
  activations: number;
  /** Distinct rows that `lanes` lanes read together. */
  uniqueRows(lanes: number): number;
  /** Share of a lane's rows that a step of `lanes` lanes also reads, and changes. */
  collisions(lanes: number): number;
}

/** Measured as resident memory of `bench step --preset hstu-large` and `fuxi-long`, minus parameters and optimiser state. */
const ACTIVATIONS = { hstu: 11, sasrec: 11, fuxi: 20 };
const ROW_STATE = { adamw: 2, 'lazy-adam': 2, 'row-adagrad': 0 };

export function workloadOf(config: ResolvedConfig, log: LogShape): Workload {
  const { model, loss, batch, optimizer } = config;
  const definition = buildDefinition(model, log.ticksPerDay ?? 86_400);
  const mean = (value: (length: number) => number) =>
    log.lengths.reduce((sum, n) => sum + value(n), 0) / log.lengths.length;
  const perWindow = mean(n => n);
  const tokens = 'tokens' in batch ? batch.tokens : batch.users * perWindow;
  const dense = definition.parameters.reduce((sum, { rows, cols }) => sum + rows * cols, 0);
  const full = loss.kind === 'full-softmax';
  const { count, pool } = loss.negatives;
  const scored = full ? log.items : pool > 0 ? Math.min(count, pool) : count;
  const bins = popularity(log);
  const negatives = pool > 0 ? pool : tokens * count;
  const drawsOf = (lanes: number): Draws => ({ popular: 2 * tokens * lanes, uniform: negatives * lanes });
  return {
    tokens,
    width: model.d,
    blocks: model.blocks,
    rows: log.items,
    blockFlops: (mean(n => definition.flops(n)) / perWindow) * tokens,
    lossFlops: 6 * tokens * model.d * scored,
    denseParameters: dense + (model.maxLength + model.outputSlots) * model.d,
    denseTensors: definition.parameters.length + 1,
    clips: optimizer.clip !== undefined,
    rowState: ROW_STATE[optimizer.table] * model.d + (optimizer.table === 'row-adagrad' ? 1 : 0),
    fetchedBytes: config.wire === 'f16' ? 2 : loss.negatives.storage === 'f16' ? mostlyHalves(tokens, negatives) : 4,
    activations: ACTIVATIONS[model.kind],
    uniqueRows: remembered(lanes => (full ? log.items : uniqueRows(bins, drawsOf(lanes)))),
    collisions: remembered(lanes => (full ? 1 : collisions(bins, drawsOf(1), drawsOf(lanes)))),
  };
}

/** Mean bytes per element, given that rows of negatives may be sent in FP16. */
function mostlyHalves(tokens: number, negatives: number): number {
  return (4 * 2 * tokens + 2 * negatives) / (2 * tokens + negatives);
}

/** Number of popularity bins, so that a large catalogue costs no more than a small one. */
const BINS = 2000;

/** Numbers of draws by popularity (items and targets) and uniformly (negatives). */
export interface Draws {
  popular: number;
  uniform: number;
}

/** Expected number of distinct rows among the draws. */
export function uniqueRows(bins: readonly Bin[], draws: Draws): number {
  return bins.reduce((sum, bin) => sum + bin.rows * drawn(bin, draws), 0);
}

/** Expected share of the rows of one set of draws that also occur in another. */
export function collisions(bins: readonly Bin[], one: Draws, other: Draws): number {
  let [both, read] = [0, 0];
  for (const bin of bins) {
    const chance = bin.rows * drawn(bin, one);
    read += chance;
    both += chance * drawn(bin, other);
  }
  return both / read;
}

/** Probability that a row of the bin is among the draws. */
function drawn({ share, even }: Bin, { popular, uniform }: Draws): number {
  return 1 - (1 - share) ** popular * (1 - even) ** uniform;
}

function remembered(value: (lanes: number) => number): (lanes: number) => number {
  const known = new Map<number, number>();
  return lanes => {
    const found = known.get(lanes) ?? value(lanes);
    known.set(lanes, found);
    return found;
  };
}

/** Rows treated as equally popular. */
export interface Bin {
  rows: number;
  /** Probability of each of its rows in a draw by popularity, and in a uniform draw. */
  share: number;
  even: number;
}

export function popularity({ items, counts }: LogShape): Bin[] {
  const sorted = counts && Float64Array.from(counts).sort((a, b) => b - a);
  const total = sorted?.reduce((sum, count) => sum + count, 0);
  const edges = [...new Set(Array.from({ length: BINS + 1 }, (_, i) => Math.round(items ** (i / BINS))))];
  if (edges[0] !== 0) edges.unshift(0);
  return edges.slice(1).map((to, i) => {
    const from = edges[i]!;
    const rows = to - from;
    // Zipf's law as the benchmarks draw it: ln((to + 1) / (from + 1)) of ln(V + 1).
    const weight =
      sorted && total
        ? sorted.subarray(from, to).reduce((sum, count) => sum + count, 0) / total
        : Math.log((to + 1) / (from + 1)) / Math.log(items + 1);
    return { rows, share: weight / rows, even: 1 / items };
  });
}
