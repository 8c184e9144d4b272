// Quality of semi-asynchronous training: the same run with rows read after the last update, and one update earlier.

import type { ConfigInput } from '../../config/schema.js';
import { LOG_TEXT, score, trainedQuality } from './quality.js';
import type { PaperRow, Section, SectionOptions } from './row.js';

const PUBLISHED = {
  'hr@10': '.0295 -> .0306',
  'hr@200': '.1757 -> .1779',
  'hr@2000': '.4528 -> .4516',
  'ndcg@10': '.0151 -> .0159',
  'ndcg@200': '.0404 -> .0414',
} as const;

/** Rows can be read ahead only if a step reads and changes a subset of them. */
const SETTINGS: ConfigInput = {
  loss: { negatives: { count: 128, pool: 128 } },
  optimizer: { table: 'row-adagrad', tableLr: 0.05 },
};

export const staleness: Section = {
  id: 'staleness',
  title: 'Semi-asynchronous training: quality',
  about: `Item rows read after the last update (synchronous) and one update earlier (tau = 1). Here: HSTU-tiny on ${LOG_TEXT}; the half width of the synchronous row's 95 % interval is given after it.`,
  parts: [{ id: 'synchronous -> semi-asynchronous', measure }],
};

async function measure(options: SectionOptions): Promise<PaperRow[]> {
  const synchronous = await trainedQuality('tiny', { ...SETTINGS, staleness: 0 }, options);
  const stale = await trainedQuality('tiny', { ...SETTINGS, staleness: 1 }, options);
  return Object.entries(PUBLISHED).map(([metric, paper]) => {
    const [before, after] = [synchronous[metric]!, stale[metric]!];
    return {
      name: `${metric}: synchronous -> semi-asynchronous`,
      paper,
      ours: `${score(before.value)} (± ${score(before.margin)}) -> ${score(after.value)}`,
      figures: { synchronous: before.value, margin: before.margin, stale: after.value },
    };
  });
}
