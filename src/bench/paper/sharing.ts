// Quality with FP16 negatives and logit sharing: the same model trained with 128 negatives, with these fetched in FP16, with
// 64, and with 64 shared by two and by four tokens.

import type { ConfigInput } from '../../config/schema.js';
import { LOG_TEXT, score, trainedQuality } from './quality.js';
import type { PaperRow, Part, Section } from './row.js';

const METRICS = ['hr@100', 'hr@1000', 'ndcg@10', 'ndcg@200'] as const;
type Negatives = NonNullable<NonNullable<ConfigInput['loss']>['negatives']>;

const REAL: Negatives = { count: 128 };
const SHARED: Negatives = { count: 64, sharing: { factor: 2 } };
const [DAYS, WHOLE] = ['days of training on a CPU', 'left out by --quick'];

interface Setting {
  name: string;
  size: 'tiny' | 'small' | 'medium' | 'large';
  paper?: string;
  negatives: Negatives;
}

const SETTINGS: readonly Setting[] = [
  { name: '128 real negatives', size: 'tiny', paper: '.0633 / .2250 / .0059 / .0200', negatives: REAL },
  {
    name: '128 real negatives, fetched in FP16',
    size: 'tiny',
    paper: 'HR@1000 within 0.05 %',
    negatives: { ...REAL, storage: 'f16' },
  },
  { name: '64 real negatives', size: 'tiny', negatives: { count: 64 } },
  { name: '64 shared by two (k = 2)', size: 'tiny', paper: '.0619 / .2253 / .0061 / .0201', negatives: SHARED },
  { name: '64 shared by four (k = 4)', size: 'tiny', negatives: { count: 64, sharing: { factor: 4 } } },
  { name: '128 real negatives', size: 'small', paper: '.1020 / .3174 / .0114 / .0331', negatives: REAL },
  { name: '64 shared by two (k = 2)', size: 'small', paper: '.1060 / .3172 / .0128 / .0349', negatives: SHARED },
  { name: '128 real negatives', size: 'medium', paper: '.1043 / .3148 / .0129 / .0343', negatives: REAL },
  { name: '64 shared by two (k = 2)', size: 'medium', paper: '.1059 / .3135 / .0125 / .0346', negatives: SHARED },
  { name: '128 real negatives', size: 'large', paper: '.0235 / .3204 / .0123 / .0347', negatives: REAL },
  { name: '64 shared by two (k = 2)', size: 'large', paper: '.0238 / .3136 / .0123 / .0341', negatives: SHARED },
  {
    name: '64 shared by four (k = 4)',
    size: 'large',
    paper: '.0257 / .3183 / .0134 / .0360',
    negatives: { count: 64, sharing: { factor: 4 } },
  },
];

export const sharing: Section = {
  id: 'sharing',
  title: 'FP16 negatives and logit sharing: quality',
  about: `${METRICS.join(' / ')} on test events. The paper: HSTU on KuaiRand-27K after 200 epochs. Here: HSTU of the same width, depth and heads on ${LOG_TEXT}.`,
  parts: SETTINGS.map(partOf),
};

function partOf({ name, size, paper, negatives }: Setting): Part {
  const id = `HSTU-${size}, ${name}`;
  const row = (found: Pick<PaperRow, 'ours' | 'figures' | 'missing'>): PaperRow[] => [
    { name: id, ...(paper !== undefined && { paper }), ...found },
  ];
  return {
    id,
    paper,
    async measure(options) {
      if (size === 'large') return row({ missing: DAYS });
      if (options.quick && size !== 'tiny') return row({ missing: WHOLE });
      const quality = await trainedQuality(size, { loss: { negatives } }, options);
      const values = METRICS.map(metric => quality[metric]!.value);
      const figures = Object.fromEntries(METRICS.map((metric, m) => [metric, values[m]!]));
      return row({ ours: values.map(score).join(' / '), figures });
    },
  };
}
