// The paper's figures of communication between devices. Each row has a source that measures it on ranks, once there is one:
// a source runs its own ranks and gives the text and the figures of the row.

import type { PaperRow, Section, SectionOptions } from './row.js';

interface CommunicationRow {
  name: string;
  paper: string;
  /** Absent: no command of ours measures this yet. */
  measure?: (options: SectionOptions) => Promise<Required<Pick<PaperRow, 'ours' | 'figures'>>>;
}

const ROWS: readonly CommunicationRow[] = [
  { name: 'step: flat -> hierarchical sparse parallelism', paper: '1,970 -> 1,790 ms' },
  { name: 'all-to-all: flat -> hierarchical', paper: '498 -> 120 ms (-75.9 %)' },
  { name: 'all communication: flat -> hierarchical', paper: '613 -> 373 ms (-39.1 %)' },
  {
    name: 'exposed sparse communication: synchronous -> semi-asynchronous',
    paper: '459.29 (24.12 %) -> 29.37 ms (2.19 %)',
  },
  { name: 'HR@10, synchronous -> semi-asynchronous', paper: '.0295 -> .0306' },
  { name: 'HR@200, synchronous -> semi-asynchronous', paper: '.1757 -> .1779' },
  { name: 'HR@2000, synchronous -> semi-asynchronous', paper: '.4528 -> .4516' },
  { name: 'NDCG@10, synchronous -> semi-asynchronous', paper: '.0151 -> .0159' },
  { name: 'NDCG@200, synchronous -> semi-asynchronous', paper: '.0404 -> .0414' },
  { name: 'pipeline, FuXi-large: compute / communication / exposed / free', paper: '94.25 / 46.89 / 5.57 / 0.18 %' },
  { name: 'pipeline, FuXi-long: compute / communication / exposed / free', paper: '94.29 / 24.04 / 5.39 / 0.33 %' },
];

const MISSING = 'needs several ranks; this command runs in one process';

export const communication: Section = {
  id: 'communication',
  title: 'Communication',
  about: 'The paper: 32 to 128 devices. Rows that need several ranks are measured where a command for them is there.',
  async measure(options) {
    const rows: PaperRow[] = [];
    for (const { name, paper, measure } of ROWS) {
      const found = measure ? await measure(options) : { missing: MISSING };
      rows.push({ section: 'communication', name, paper, ...found });
    }
    return rows;
  },
};
