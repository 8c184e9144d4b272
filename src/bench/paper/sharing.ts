// FP16 negatives and logit sharing in quality: the same model trained with 128 real negatives, with the same fetched in FP16,
// with 64, and with 64 shared by two and by four tokens, on a synthetic log, judged on test events at the epoch that validation chose.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ConfigInput } from '../../config/schema.js';
import { prepare } from '../../data/prepare/prepare.js';
import { synthesize } from '../../data/synth/synthesize.js';
import { train } from '../../jobs/train.js';
import type { PaperRow, Section } from './row.js';

const METRICS = ['hr@100', 'hr@1000', 'ndcg@10', 'ndcg@200'] as const;
type Negatives = NonNullable<NonNullable<ConfigInput['loss']>['negatives']>;

const SETTINGS: readonly { name: string; paper: string; negatives: Negatives }[] = [
  { name: '128 real negatives', paper: '.0235 / .3204 / .0123 / .0347', negatives: { count: 128 } },
  {
    name: '128 real negatives, fetched in FP16',
    paper: 'HR@1000 within 0.05 %',
    negatives: { count: 128, storage: 'f16' },
  },
  { name: '64 real negatives', paper: '', negatives: { count: 64 } },
  {
    name: '64 shared by two (k = 2)',
    paper: '.0238 / .3136 / .0123 / .0341',
    negatives: { count: 64, sharing: { factor: 2 } },
  },
  {
    name: '64 shared by four (k = 4)',
    paper: '.0257 / .3183 / .0134 / .0360',
    negatives: { count: 64, sharing: { factor: 4 } },
  },
];

export const sharing: Section = {
  id: 'sharing',
  title: 'FP16 negatives and logit sharing: quality',
  about: `${METRICS.join(' / ')} on test events. The paper: HSTU-large on KuaiRand-27K after 200 epochs. Here: HSTU of width 64 and 2 blocks on a synthetic log made by this command, so only the differences between rows compare; one seed.`,
  async measure({ quick, threads }) {
    const folder = mkdtempSync(join(tmpdir(), 'turbogr-bench-paper-'));
    try {
      const [log, store] = [join(folder, 'log.csv'), join(folder, 'store')];
      const users = quick ? 400 : 3000;
      await synthesize({ out: log, users, meanLength: 60, videos: 4000, seed: 1, margin: false });
      await prepare({ files: [log], out: store });
      const rows: PaperRow[] = [];
      for (const [at, { name, paper, negatives }] of SETTINGS.entries()) {
        const config = runConfig(negatives, { quick, threads });
        const { test } = await train({ data: store, config, run: join(folder, `run-${at}`) });
        const values = METRICS.map(metric => test!.metrics['model']![metric]!.value);
        rows.push({
          section: 'sharing',
          name,
          ...(paper !== '' && { paper }),
          ours: values.map(value => value.toFixed(4).replace(/^0/, '')).join(' / '),
          figures: Object.fromEntries(METRICS.map((metric, m) => [metric, values[m]!])),
        });
      }
      return rows;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function runConfig(
  negatives: Negatives,
  { quick, threads }: { quick: boolean; threads?: number | undefined },
): ConfigInput {
  return {
    recipe: 'plain',
    model: { kind: 'hstu', d: 64, blocks: 2, heads: 2, maxLength: 64 },
    loss: { negatives },
    optimizer: { lr: 2e-3 },
    batch: { tokens: quick ? 2048 : 8192 },
    epochs: quick ? 4 : 30,
    evaluation: { cutoffs: [10, 100, 200, 1000], patience: 4 },
    checkpoint: { keep: 1 },
    ...(threads !== undefined && { threads }),
  };
}
