// The paper's figures of communication between devices, beside what two ranks of this machine reach where there is an MPI
// (`turbogr bench scale`). Rows that no command of ours measures say so.

import { UserError } from '../../util/errors.js';
import { formatShare } from '../../util/terminal.js';
import { benchScale } from '../scale.js';
import type { PaperRow, Section } from './row.js';

/** Of the paper's small models, which a machine of few cores can take two ranks of. */
const LINEARITY = [
  { model: 'hstu-tiny', paper: '0.38' },
  { model: 'hstu-small', paper: '0.58' },
  { model: 'hstu-medium', paper: '0.7' },
];

const [NODES, STALE, FUXI] = [
  'needs several nodes: `turbogr bench scale` has two ranks on one',
  'needs several nodes and training runs to the end',
  'two ranks of this size do not fit a small machine',
];
const UNMEASURED: readonly [name: string, paper: string, missing: string][] = [
  ['step: flat -> hierarchical sparse parallelism', '1,970 -> 1,790 ms', NODES],
  ['all-to-all: flat -> hierarchical', '498 -> 120 ms (-75.9 %)', NODES],
  ['all communication: flat -> hierarchical', '613 -> 373 ms (-39.1 %)', NODES],
  ['exposed sparse communication: synchronous -> semi-asynchronous', '459.29 (24.12 %) -> 29.37 ms (2.19 %)', NODES],
  ['HR@10: synchronous -> semi-asynchronous', '.0295 -> .0306', STALE],
  ['HR@200: synchronous -> semi-asynchronous', '.1757 -> .1779', STALE],
  ['HR@2000: synchronous -> semi-asynchronous', '.4528 -> .4516', STALE],
  ['NDCG@10: synchronous -> semi-asynchronous', '.0151 -> .0159', STALE],
  ['NDCG@200: synchronous -> semi-asynchronous', '.0404 -> .0414', STALE],
  ['FuXi-large: compute / communication / exposed / free', '94.25 / 46.89 / 5.57 / 0.18 %', FUXI],
  ['FuXi-long: compute / communication / exposed / free', '94.29 / 24.04 / 5.39 / 0.33 %', FUXI],
];

export const communication: Section = {
  id: 'communication',
  title: 'Communication and linearity',
  about:
    'The paper: 32 to 128 devices. Here: two ranks of one thread against one rank on this machine, the same tokens per rank; in brackets what two copies that do not communicate reach in the same run, which is the limit of the machine, and where the time of the two ranks goes.',
  async measure({ quick }) {
    const unmeasured = UNMEASURED.map(([name, paper, missing]) => ({ section: 'communication', name, paper, missing }));
    return [...(await linearity(quick)), ...unmeasured];
  },
};

async function linearity(quick: boolean): Promise<PaperRow[]> {
  const row = (model: string, paper: string, found: Pick<PaperRow, 'ours' | 'figures' | 'missing'>): PaperRow => ({
    section: 'communication',
    name: `linearity, ${model}`,
    paper,
    ...found,
  });
  try {
    const models = quick ? LINEARITY.slice(0, 2) : LINEARITY;
    const rows = await benchScale(
      models.map(({ model }) => model),
      { quick },
    );
    return LINEARITY.map(({ model, paper }, m) => {
      const scale = rows[m];
      if (!scale) return row(model, paper, { missing: 'left out by --quick' });
      const { efficiency, limit, compute_ratio: computing, exposed_comm: exposed, wait, free } = scale;
      const parts = [computing, exposed, wait, free].map(share => formatShare(share, 1)).join(' / ');
      const ours = `${efficiency.toFixed(2)} (limit ${limit.toFixed(2)}); computing / exposed / waiting / free ${parts}`;
      return row(model, paper, { ours, figures: { efficiency, limit, computing, exposed, wait, free } });
    });
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const missing = error.message.split('\n', 1)[0]!;
    return LINEARITY.map(({ model, paper }) => row(model, paper, { missing }));
  }
}
