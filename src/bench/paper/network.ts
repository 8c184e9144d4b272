// The paper's figures for hierarchical sparse parallelism and semi-asynchronous training, measured with four ranks on two
// simulated nodes with a slow link (`turbogr bench network`).

import { UserError } from '../../util/errors.js';
import { formatCount, formatShare } from '../../util/terminal.js';
import { benchNetwork, describeCase, type NetworkRow, PER_NODE, RANKS, type Scheme } from '../network.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

const GBIT = 1;

const SCHEMES = {
  flat: { groupSize: RANKS, staleness: 0 },
  grouped: { groupSize: PER_NODE, staleness: 0 },
  flatStale: { groupSize: RANKS, staleness: 1 },
  groupedStale: { groupSize: PER_NODE, staleness: 1 },
  flatExact: { groupSize: RANKS, staleness: 'exact' },
} as const satisfies Record<string, Scheme>;
type SchemeName = keyof typeof SCHEMES;

interface Comparison {
  name: string;
  paper?: string;
  from: SchemeName;
  to: SchemeName;
  value: (row: NetworkRow) => number;
  unit: string;
  /** Share of the step, printed after the value. */
  share?: (row: NetworkRow) => number;
}

const exposed = {
  value: (row: NetworkRow) => row.exposed_sparse * row.step_ms,
  unit: 'ms',
  share: (row: NetworkRow) => row.exposed_sparse,
};

const COMPARISONS: readonly Comparison[] = [
  {
    name: 'step: one group -> a group per node',
    paper: '1,970 -> 1,790 ms',
    from: 'flat',
    to: 'grouped',
    value: row => row.step_ms,
    unit: 'ms',
  },
  {
    name: 'fetching rows (all-to-all): one group -> a group per node',
    paper: '498 -> 120 ms (-75.9 %)',
    from: 'flat',
    to: 'grouped',
    value: row => row.forward_ms,
    unit: 'ms',
  },
  {
    name: 'all communication: one group -> a group per node',
    paper: '613 -> 373 ms (-39.1 %)',
    from: 'flat',
    to: 'grouped',
    value: row => row.comm_ms,
    unit: 'ms',
  },
  {
    name: 'bytes that leave a node in a step: one group -> a group per node',
    from: 'flat',
    to: 'grouped',
    value: row => row.node_mb,
    unit: 'MB',
  },
  {
    name: 'exposed sparse communication, one group: synchronous -> semi-asynchronous',
    paper: '459.29 ms (24.12 %) -> 29.37 ms (2.19 %)',
    from: 'flat',
    to: 'flatStale',
    ...exposed,
  },
  {
    name: 'exposed sparse communication, a group per node: synchronous -> semi-asynchronous',
    from: 'grouped',
    to: 'groupedStale',
    ...exposed,
  },
  {
    name: 'exposed sparse communication, one group: synchronous -> exact (the weights of synchronous)',
    from: 'flat',
    to: 'flatExact',
    ...exposed,
  },
  {
    name: 'step: one group, synchronous -> a group per node, semi-asynchronous',
    from: 'flat',
    to: 'groupedStale',
    value: row => row.step_ms,
    unit: 'ms',
  },
];

export const network: Section = {
  id: 'network',
  title: 'Hierarchical sparse parallelism and semi-asynchronous training: time',
  about: `The paper: 16 nodes of 8 devices. Here: four ranks on two nodes of two, made of network namespaces on this machine, ${GBIT} Gbit/s between them; ${describeCase()}. All ranks share the machine's cores, so computing takes a larger part of the step than on machines of their own. Exchanges are timed on the rank that comes to them last: transfer, not waiting.`,
  parts: [{ id: 'two nodes of two ranks', measure }],
};

async function measure({ quick }: SectionOptions): Promise<PaperRow[]> {
  const found = await measureSchemes(quick);
  return COMPARISONS.map(({ name, paper, from, to, value, unit, share }) => {
    const row = { name, ...(paper !== undefined && { paper }) };
    if (typeof found === 'string') return { ...row, missing: found };
    const [before, after] = [found.get(from)!, found.get(to)!];
    const text = (scheme: NetworkRow): string =>
      `${formatCount(value(scheme))} ${unit}${share ? ` (${formatShare(share(scheme))})` : ''}`;
    const change = `${(100 * (value(after) / value(before) - 1)).toFixed(1)} %`;
    return {
      ...row,
      ours: `${text(before)} -> ${text(after)}${share ? '' : ` (${change})`}`,
      figures: { before: value(before), after: value(after) },
    };
  });
}

/** The measurement, or why there is none. */
async function measureSchemes(quick: boolean): Promise<ReadonlyMap<string, NetworkRow> | string> {
  const how = quick ? { steps: 8, turns: 1 } : { steps: 20, turns: 2 };
  try {
    const rows = await benchNetwork({ gbit: GBIT, schemes: Object.values(SCHEMES), ...how });
    return new Map(Object.keys(SCHEMES).map((name, i) => [name, rows[i]!]));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return error.message.split('\n', 1)[0]!;
  }
}
