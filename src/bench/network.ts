// `turbogr bench network`: four ranks on two nodes of two, with a slow link between them, in temporary network namespaces.
// Compares rows fetched over the link (one group of all ranks) with rows fetched inside a node
// (groups of two, gradients reconciled between them); synchronous, exact and stale; rows sent in f32 and in FP16.
//
//   forward_ms      exchanges that fetch a step's rows, each on the rank of the group that enters it last: transfer, not waiting
//   comm_ms         all exchanges of a step, on the rank that spends the least time in them
//   node_mb         MB sent over a node's link per step
//   exposed_rows    share of the step in which rows are sent, or sent again, and nothing is computed, on the rank that enters
//                   these exchanges last
//   exposed_sparse  the same for rows and their gradients
//   exposed_comm    the same for all exchanges, on all ranks; wait, computing and free make up the rest
//
// The workload is heavy on rows: many negatives and few tokens. A round ends when its last step has been applied, which
// cannot be hidden; with 40 steps per round that is about half a percent.

import { Command } from '@commander-js/extra-typings';
import { NodeSpaces, whyNoNodeSpaces } from '../dist/launch/node-spaces.js';
import { countNumber, positiveNumber } from '../util/number-flags.js';
import { formatCount, formatShare, table } from '../util/terminal.js';
import { median } from './measuring.js';
import type { NetworkSpec, SchemeTurn, SchemeTurns } from './ranks/network-program.js';
import type { RankCase } from './ranks/rank-case.js';
import { runRanks } from './ranks/run-ranks.js';
import { type TurnShares, turnShares } from './ranks/turn-shares.js';

const NODES = 2;
export const PER_NODE = 2;
export const RANKS = NODES * PER_NODE;

const CASE: RankCase = {
  kind: 'hstu',
  d: 256,
  blocks: 2,
  heads: 4,
  tokens: 1024,
  rows: 1_000_000,
  pool: 8192,
  lanes: RANKS,
};
const QUICK = { d: 32, heads: 1, tokens: 256, rows: 10_000, pool: 256 };

type Staleness = 0 | 1 | 'exact';
export interface Scheme {
  groupSize: number;
  staleness: Staleness;
  wire?: NetworkRow['wire'];
}

const SCHEMES: readonly Scheme[] = [
  { groupSize: RANKS, staleness: 0 },
  { groupSize: PER_NODE, staleness: 0 },
  { groupSize: RANKS, staleness: 'exact' },
  { groupSize: RANKS, staleness: 1 },
  { groupSize: PER_NODE, staleness: 'exact' },
  { groupSize: PER_NODE, staleness: 1 },
  { groupSize: RANKS, staleness: 0, wire: 'f16' },
  { groupSize: PER_NODE, staleness: 0, wire: 'f16' },
];

export interface NetworkRow extends TurnShares {
  group_size: number;
  staleness: Staleness;
  /** How rows are sent. */
  wire: 'f32' | 'f16';
  step_ms: number;
  forward_ms: number;
  comm_ms: number;
  node_mb: number;
  exposed_rows: number;
  exposed_sparse: number;
  /** Rows that were stale, or sent again. */
  changed: number;
}

export function benchNetworkCommand() {
  return new Command('network')
    .description('four ranks on two nodes with a slow link: groups against one group, stale against synchronous')
    .option('--gbit <rate>', 'rate of the link', positiveNumber, 1)
    .option('--steps <count>', 'steps of a turn', countNumber, 40)
    .option('--turns <count>', 'turns of each scheme', countNumber, 1)
    .option('--quick', 'a small table and few steps: shows that it works, measures little')
    .option('--json', 'one JSON object')
    .action(async ({ gbit, steps, turns, quick = false, json }) => {
      const why = whyNoNodeSpaces();
      if (why !== undefined) {
        process.stdout.write(json ? `${JSON.stringify({ skipped: why, rows: [] })}\n` : `skipped: ${why}\n`);
        return;
      }
      const how = quick
        ? { size: { ...CASE, ...QUICK }, gbit, steps: 2, turns: 1 }
        : { size: CASE, gbit, steps, turns };
      const rows = await benchNetwork(how);
      process.stdout.write(json ? `${JSON.stringify({ gbit, rows })}\n` : `${describe(how, rows)}\n`);
    });
}

interface Measuring {
  size?: RankCase;
  schemes?: readonly Scheme[];
  gbit: number;
  steps: number;
  turns: number;
}

/** A row for each scheme; the usual case and all schemes unless others are given. */
export async function benchNetwork(how: Measuring): Promise<NetworkRow[]> {
  const { size = CASE, schemes = SCHEMES, gbit, steps, turns } = how;
  const spec: NetworkSpec = { schemes: schemes.map(settings => ({ ...size, settings })), steps, turns };
  await using nodes = new NodeSpaces({ nodes: NODES, bitsPerSecond: gbit * 1e9 });
  const found = await runRanks<SchemeTurns[]>({
    program: 'network-program.js',
    spec,
    ranks: RANKS,
    nodes,
    mpi: 'openmpi',
  });
  return found.map((taken, i) => rowOf(schemes[i]!, taken, steps));
}

export function rowOf(
  { groupSize, staleness, wire = 'f32' }: Scheme,
  { turns, changed }: SchemeTurns,
  steps: number,
): NetworkRow {
  // Early ranks wait for the others: the shortest time is the exchange itself.
  const onLast = (of: (turn: SchemeTurn) => number) => median(turns.map(turn => Math.min(...turn.map(of))));
  return {
    group_size: groupSize,
    staleness,
    wire,
    step_ms: (median(turns.map(turn => Math.max(...turn.map(({ wall }) => wall)))) / steps) * 1e3,
    forward_ms: (median(turns.map(turn => transferTime(turn, groupSize))) / steps) * 1e3,
    comm_ms: (onLast(({ comm }) => comm) / steps) * 1e3,
    node_mb: median(turns.map(turn => Math.max(...turn.map(({ sent }) => sent)))) / steps / 1e6,
    exposed_rows: onLast(({ bareRows, wall }) => bareRows / wall),
    exposed_sparse: onLast(({ bareSparse, wall }) => bareSparse / wall),
    ...turnShares(turns),
    changed,
  };
}

/** Seconds in which rows are fetched by the slower group. Which rank comes last differs from one exchange to the next. */
function transferTime(turn: readonly SchemeTurn[], groupSize: number): number {
  const groups = Array.from({ length: turn.length / groupSize }, (_, g) =>
    turn.slice(g * groupSize, (g + 1) * groupSize),
  );
  const shortest = (ranks: readonly SchemeTurn[], i: number): number =>
    Math.min(...ranks.map(({ fetches }) => fetches[i]!));
  return Math.max(...groups.map(ranks => ranks[0]!.fetches.reduce((sum, _, i) => sum + shortest(ranks, i), 0)));
}

/** The workload of a rank, for people. */
export function describeCase({ d, blocks, rows, tokens, pool }: RankCase = CASE): string {
  return `HSTU of width ${d} with ${blocks} blocks, ${formatCount(rows)} rows, ${formatCount(tokens)} tokens and a pool of ${formatCount(pool)} negatives a rank`;
}

function describe({ gbit, size }: { gbit: number; size: RankCase }, rows: readonly NetworkRow[]): string {
  const cells = rows.map(row => [
    row.group_size === RANKS ? 'one group' : `groups of ${row.group_size}`,
    String(row.staleness),
    row.wire,
    row.step_ms.toFixed(0),
    row.forward_ms.toFixed(1),
    row.node_mb.toFixed(1),
    ...[row.exposed_rows, row.exposed_sparse, row.exposed_comm, row.wait, row.compute_ratio, row.changed].map(share =>
      formatShare(share, 1),
    ),
  ]);
  const names = [
    'tables',
    'staleness',
    'wire',
    'step ms',
    'rows ms',
    'MB out',
    'rows bare',
    'sparse bare',
    'exposed',
    'waiting',
    'computing',
    'changed',
  ];
  const [flat, grouped] = [rows[0]!, rows[1]!];
  return [
    table(names, cells),
    '',
    `Two nodes of two ranks, ${gbit} Gbit/s between them; ${describeCase(size)}.`,
    `Fetching rows inside a node instead of over the link: ${formatShare(grouped.forward_ms / flat.forward_ms - 1, 1)}.`,
  ].join('\n');
}
