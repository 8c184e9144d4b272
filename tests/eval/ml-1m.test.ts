// Figures that are known from elsewhere, on the real log, where it is present: a baseline that comes out differently
// means that order, split, exclusion or metric is not what it says.

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { SequenceStore } from '../../src/data/store/sequence-store.js';
import { MarkovBaseline } from '../../src/eval/baselines.js';
import { LogPriors } from '../../src/eval/priors/log-priors.js';
import { metricOf } from '../../src/eval/metrics.js';
import { rankBaseline } from '../../src/eval/rank-baseline.js';

const LOG = '../shared/data/ml-1m.csv.gz';
const folder = mkdtempSync(join(tmpdir(), 'turbogr-ml-1m-'));
afterAll(() => rmSync(folder, { recursive: true }));

test.skipIf(!existsSync(LOG))(
  `first-order Markov on MovieLens 1M, last event left out, seen items dropped (needs ${LOG})`,
  async () => {
    const out = join(folder, 'store');
    await prepare({ files: [LOG], out, user: 'user_id', item: 'item_id', time: 'order_unstable', catalogue: 3883 });
    const source = SequenceStore.open(out);
    const { popularity, successors } = new LogPriors(source, 'test');
    const baseline = new MarkovBaseline(popularity, successors);
    const ranks = await rankBaseline({ baseline, source, part: 'test', exclude: 'history', maxLength: 200 });
    expect(ranks.ranks).toHaveLength(6040);
    expect(metricOf(ranks, 'hr@10')).toBeCloseTo(0.189, 2);
  },
  60_000,
);
