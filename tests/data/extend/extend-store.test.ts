import * as fc from 'fast-check';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { extendStore } from '../../../src/data/extend/extend-store.js';
import { mergeUser } from '../../../src/data/extend/merge-user.js';
import { SequenceStore } from '../../../src/data/store/sequence-store.js';
import { Random } from '../../../src/util/random.js';
import { contents, Workbench } from '../prepare/workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

interface Row {
  user: string;
  item: string;
  time: number;
  action: string;
}

const HEADER = 'user,item,time,action';
const csv = (rows: readonly Row[]) =>
  [HEADER, ...rows.map(({ user, item, time, action }) => `${user},${item},${time},${action}`), ''].join('\n');

/** Users and items that come and go, and times that often tie. */
function randomRows(seed: number, count: number, from: number): Row[] {
  const random = new Random(seed, 'extend');
  return Array.from({ length: count }, () => ({
    user: `u${random.below(30)}`,
    item: `i${random.below(40) + (seed === 2 ? 15 : 0)}`,
    time: from + random.below(50),
    action: ['click', 'like', seed === 2 ? 'buy' : 'share'][random.below(3)]!,
  }));
}

const FEATURES = ['item,kind,price', ...Array.from({ length: 60 }, (_, i) => `i${i},k${i % 3},${i / 2}`), ''].join(
  '\n',
);

test('a store and newer events hold what the whole log holds, and old ids are as they were', async () => {
  const [old, newer] = [randomRows(1, 400, 1000), randomRows(2, 300, 1030)];
  const files = {
    old: bench.write('old.csv', csv(old)),
    newer: bench.write('newer.csv', csv(newer)),
    // Old rows first: at equal times, what was there comes before what is new.
    grown: bench.write('grown.csv', csv([...old, ...newer])),
  };
  const features = [{ of: 'item' as const, files: [bench.write('items.csv', FEATURES)], key: 'item' }];
  const { store: base } = await bench.build({ files: [files.old], features, timeUnit: 's' });
  const { store: delta } = await bench.build({ files: [files.newer], split: 'none', features, timeUnit: 's' });
  const { store: whole } = await bench.build({ files: [files.grown], features, timeUnit: 's' });

  const rule = { kind: 'leave-one-out' } as const;
  const report = extendStore({ base, newer: delta, out: join(bench.folder, 'extended'), rule });
  const extended = SequenceStore.open(join(bench.folder, 'extended'));
  await extended.verify();

  const sorted = (store: SequenceStore) =>
    contents(store).toSorted((a, b) => (a.user < b.user ? -1 : a.user > b.user ? 1 : 0));
  expect(sorted(extended)).toEqual(sorted(whole));
  expect(report.newEvents).toBe(300);
  expect([extended.users, extended.items]).toEqual([whole.users, whole.items]);
  expect(report.newItems).toBe(whole.items - base.items);
  expect(report.newItems).toBeGreaterThan(0);
  expect(report.firstTime).toBe(newer.reduce((least, { time }) => Math.min(least, time), Infinity));

  for (let id = 0; id < base.items; id++) expect(extended.originalItem(id)).toBe(base.originalItem(id));
  for (let id = 0; id < base.users; id++) expect(extended.originalUser(id)).toBe(base.originalUser(id));
  const labelsOf = (store: SequenceStore) => (user: string) =>
    Array.from(store.sequence(store.userId(user)!).actions!, action => store.index.action!.labels[action]);
  for (const user of new Set(old.map(row => row.user))) expect(labelsOf(extended)(user)).toEqual(labelsOf(whole)(user));
  for (let id = 0; id < extended.items; id++) {
    const item = extended.originalItem(id);
    expect(extended.itemId(item)).toBe(id);
    expect(extended.itemVocabulary.count(id)).toBe(whole.itemVocabulary.count(whole.itemId(item)!));
  }

  // The whole grown log instead of the newer part: what is known already is left out.
  const again = extendStore({ base, newer: whole, out: join(bench.folder, 'again'), rule });
  expect([again.newEvents, again.knownEvents]).toEqual([300, 400]);
  expect(sorted(SequenceStore.open(join(bench.folder, 'again')))).toEqual(sorted(whole));
  expect(() => extendStore({ base, newer: base, out: join(bench.folder, 'none'), rule })).toThrow('no event');
});

test('integer ids stay integers until a text comes', async () => {
  const log = (name: string, ids: readonly (string | number)[]) =>
    bench.write(name, ['user,item,time', ...ids.map((id, i) => `${i % 3},${id},${100 + i}`), ''].join('\n'));
  const { store: base } = await bench.build({ files: [log('a.csv', [5, 7, 9, 5, 7, 9])] });
  const { store: numbers } = await bench.build({
    files: [log('b.csv', [11, 5, 3, 11, 5, 3])],
    split: 'none',
  });
  const { store: texts } = await bench.build({
    files: [log('c.csv', ['x', 5, '007', 'x', 5, 7])],
    split: 'none',
    idType: 'text',
  });
  const rule = { kind: 'none' } as const;
  extendStore({ base, newer: numbers, out: join(bench.folder, 'numbers'), rule });
  extendStore({ base, newer: texts, out: join(bench.folder, 'texts'), rule });
  const [a, b] = ['numbers', 'texts'].map(name => SequenceStore.open(join(bench.folder, name)));
  expect(a!.index.vocabulary.item.kind).toBe('integer');
  expect([3, 5, 7, 9, 11].map(id => a!.itemId(id) !== undefined)).toEqual([true, true, true, true, true]);
  expect(b!.index.vocabulary.item.kind).toBe('text');
  expect(b!.itemId('007')).not.toBe(b!.itemId('7'));
  expect(b!.originalItem(base.itemId(7)!)).toBe('7');
});

test('a log that reads otherwise is refused by name', async () => {
  const seconds = bench.write('s.csv', 'user,item,time\n1,1,100\n1,2,200\n1,3,300\n');
  const { store: base } = await bench.build({ files: [seconds], timeUnit: 's' });
  const { store: other } = await bench.build({ files: [seconds], timeUnit: 'ms' });
  const out = join(bench.folder, 'refused');
  expect(() => extendStore({ base, newer: other, out, rule: { kind: 'none' } })).toThrow('times in s, now ms');
});

test('merging keeps every event once and the order by time, base first', () => {
  const events = fc.array(fc.record({ item: fc.nat(3), time: fc.nat(6) }), { maxLength: 12 });
  const columns = (rows: readonly { item: number; time: number }[]) => ({
    items: Int32Array.from(rows, ({ item }) => item),
    times: BigInt64Array.from(rows, ({ time }) => BigInt(time)),
    actions: undefined,
  });
  fc.assert(
    fc.property(events, events, (base, newer) => {
      const byTime = (rows: typeof base) => rows.toSorted((a, b) => a.time - b.time);
      const [b, n] = [byTime(base), byTime(newer)];
      const merged = Array.from(mergeUser(columns(b), columns(n)), place => (place >= 0 ? b[place]! : n[~place]!));
      expect(merged.map(({ time }) => time)).toEqual(merged.map(({ time }) => time).toSorted((x, y) => x - y));
      const count = (rows: typeof base, { item, time }: (typeof base)[number]) =>
        rows.filter(row => row.item === item && row.time === time).length;
      for (const event of [...b, ...n]) expect(count(merged, event)).toBe(Math.max(count(b, event), count(n, event)));
    }),
  );
});
