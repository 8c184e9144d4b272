// A training step as the planner sees it: what a lane computes, which rows it reads, what must be held in memory. From a
// config and either a store's statistics or a few numbers about the log.
//
// T tokens of a lane, D width, V rows of the item table, R negatives.

import type { ResolvedConfig } from '../config/schema.js';
import { buildDefinition } from '../nn/build.js';

/** What must be known of a log. */
export interface LogShape {
  /** V. */
  items: number;
  /** Lengths of training windows, a sample of them. */
  lengths: readonly number[];
  /** How often each item occurs, most frequent first or in any order; Zipf's law over V when absent. */
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
  /** Tensors of them: each is summed by exchanges of its own. */
  denseTensors: number;
  /** Floats of optimiser state per row. */
  rowState: number;
  /** Bytes of a number in rows that are fetched; gradients come back as f32. */
  fetchedBytes: number;
  /** Floats that a token leaves behind for backward, per unit of width and block. */
  activations: number;
  /** Different rows that so many lanes read together. */
  uniqueRows(lanes: number): number;
  /** Share of a lane's rows that a step of so many lanes reads too, and changes. */
  collisions(lanes: number): number;
}

/** Measured as resident memory of `bench step --preset hstu-large` and `fuxi-long`, less parameters and optimiser. */
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
    rowState: ROW_STATE[optimizer.table] * model.d + (optimizer.table === 'row-adagrad' ? 1 : 0),
    fetchedBytes: config.wire === 'f16' ? 2 : loss.negatives.storage === 'f16' ? mostlyHalves(tokens, negatives) : 4,
    activations: ACTIVATIONS[model.kind],
    uniqueRows: remembered(lanes => (full ? log.items : uniqueRows(bins, drawsOf(lanes)))),
    collisions: remembered(lanes => (full ? 1 : collisions(bins, drawsOf(1), drawsOf(lanes)))),
  };
}

/** Bytes of a number, where rows of negatives are sent in FP16. */
function mostlyHalves(tokens: number, negatives: number): number {
  return (4 * 2 * tokens + 2 * negatives) / (2 * tokens + negatives);
}

/** Bins of equal popularity, so that a large catalogue costs no more than a small one. */
const BINS = 2000;

/** Draws of rows: by popularity (items and targets), and of any row alike (negatives). */
export interface Draws {
  popular: number;
  uniform: number;
}

/** Expected number of different rows among so many draws. */
export function uniqueRows(bins: readonly Bin[], draws: Draws): number {
  return bins.reduce((sum, bin) => sum + bin.rows * drawn(bin, draws), 0);
}

/** Expected share of the rows of one set of draws that are in another too. */
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

/** Rows that are taken for equally popular. */
export interface Bin {
  rows: number;
  /** Probability of one of its rows in a draw by popularity, and in one of any row. */
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
