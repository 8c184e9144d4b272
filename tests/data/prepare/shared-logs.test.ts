// The real logs beside the project, where there are any: each prepares with no flag beyond column names.
import { existsSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { Workbench } from './workbench.js';

const FOLDER = '../shared/data';
const bench = new Workbench();
afterAll(() => bench.remove());

describe.skipIf(!existsSync(FOLDER))(`real logs (skipped where ${FOLDER} is absent)`, () => {
  it('KuaiRand-Pure: times in ms', async () => {
    const { store } = await bench.build({ files: [`${FOLDER}/kuairand-pure-log.csv.gz`] });
    expect([store.users, store.items, store.events, store.index.time.kind]).toEqual([25_156, 6_361, 228_329, 'ms']);
  });

  it('ML-1M: two orders, two fingerprints, no times', async () => {
    const files = [`${FOLDER}/ml-1m.csv.gz`];
    const stable = await bench.build({ files, time: 'order_stable', catalogue: 3_883 });
    const unstable = await bench.build({ files, time: 'order_unstable', catalogue: 3_883 });
    expect([stable.store.users, stable.report.seenItems, stable.store.items]).toEqual([6_040, 3_706, 3_883]);
    expect(stable.report.lengths).toMatchObject({ median: 96, max: 2_314 });
    expect([stable.store.hasTime, stable.store.index.time.kind]).toEqual([false, 'order']);
    expect(unstable.store.fingerprint).not.toBe(stable.store.fingerprint);
  });

  it('the package log: times in s, very long users, no flag at all', async () => {
    const { store, report } = await bench.build({ files: [`${FOLDER}/package-log.csv.gz`] });
    expect([store.users, store.items, store.events, store.index.time.kind]).toEqual([3_234, 129_923, 1_983_041, 's']);
    expect(report.lengths.max).toBe(50_693);
    expect(store.hasAction).toBe(true);
  });
});
