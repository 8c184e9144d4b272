// All sections in the order of the paper, those without a measurement of their own included.

import { attention } from './attention.js';
import { balance } from './balance.js';
import { ladder } from './ladder.js';
import { lookup } from './lookup.js';
import { mfu } from './mfu.js';
import type { Section } from './row.js';

/** Figures of the paper that this command does not measure, and where they can be had. */
function elsewhere(
  id: string,
  title: string,
  rows: readonly [name: string, paper: string, missing: string][],
): Section {
  return {
    id,
    title,
    about: 'Not measured by this command.',
    measure: () => Promise.resolve(rows.map(([name, paper, missing]) => ({ section: id, name, paper, missing }))),
  };
}

const CLUSTER = 'needs several ranks; `turbogr bench` has no such measurement in one process';

export const SECTIONS: readonly Section[] = [
  mfu,
  attention,
  lookup,
  balance,
  elsewhere('communication', 'Communication', [
    ['step with hierarchical sparse parallelism', '1,970 -> 1,790 ms', CLUSTER],
    ['all-to-all', '498 -> 120 ms (-75.9 %)', CLUSTER],
    ['all communication', '613 -> 373 ms (-39.1 %)', CLUSTER],
    ['exposed sparse communication, semi-asynchronous', '24.12 -> 2.19 %', CLUSTER],
    ['computing ratio of the pipeline, FuXi-large / FuXi-long', '94.25 / 94.29 %', CLUSTER],
  ]),
  elsewhere('negatives', 'Negatives', [
    [
      'memory at R = 32 / 64 / 128',
      '22.21 -> 17.42 / 31.64 -> 23.44 / 50.39 -> 34.27 GB',
      'see `turbogr bench negatives`',
    ],
    [
      'FP16 negatives, difference in HR@1000',
      '0.05 %',
      'needs training runs to the end: a matter of days, not of this command',
    ],
    [
      'logit sharing, HR@1000 (large, k = 4)',
      '.3204 -> .3183',
      'needs training runs to the end: a matter of days, not of this command',
    ],
  ]),
  ladder,
];
