import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type Event, Workbench, contents, csv } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

const START = 1_600_000_000;
const LOG = Array.from({ length: 80 }, (_, i) => ({
  user: String((i * i) % 9),
  item: String((i * 5) % 11),
  time: START + i,
}));

/** Remove users and items with fewer than k events until none is left: as slow and as plain as it gets. */
function core(events: readonly Event[], minUser: number, minItem: number): Event[] {
  let left = [...events];
  for (;;) {
    const enough = (key: 'user' | 'item', n: number) => (event: Event) =>
      left.filter(other => other[key] === event[key]).length >= n;
    const kept = left.filter(enough('user', minUser)).filter(enough('item', minItem));
    if (kept.length === left.length) return left;
    left = kept;
  }
}

const sorted = (events: readonly Event[]) =>
  [...events].sort((a, b) => Number(a.user) - Number(b.user) || a.time - b.time);

describe('filters', () => {
  it('reach the k-core', async () => {
    let run = 0;
    const logs = fc.array(fc.tuple(fc.nat(5), fc.nat(6)), { minLength: 30, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(
        logs,
        fc.constantFrom([2, 2], [3, 1], [1, 4], [3, 3]),
        async (pairs, [minUser = 1, minItem = 1]) => {
          const events = pairs.map(([user, item], i) => ({ user: String(user), item: String(item), time: START + i }));
          const expected = core(events, minUser, minItem);
          fc.pre(expected.length > 0);
          const file = bench.write(`core-${run++}.csv`, csv(events));
          const { store, report } = await bench.build({ files: [file], minUser, minItem });
          expect(contents(store)).toEqual(sorted(expected));
          expect(report.filters.at(-1)?.left).toBe(expected.length);
          expect(report.filters.reduce((n, { removed }) => n + removed, 0)).toBe(events.length - expected.length);
        },
      ),
      { numRuns: 6 },
    );
  });

  it('unravel a chain that falls one link a round, and keep what holds together', async () => {
    const chain = Array.from({ length: 12 }, (_, link) =>
      [link, link + 1].map(item => ({ user: `${link}`, item: `${item}` })),
    ).flat();
    const knot = ['90', '91'].flatMap(user => ['70', '71'].map(item => ({ user, item })));
    const events = [...chain, ...knot].map((pair, i) => ({ ...pair, time: START + i }));
    const { store } = await bench.build({ files: [bench.write('chain.csv', csv(events))], kCore: 2 });
    expect(contents(store)).toEqual(events.slice(-4));
  });

  it('cut the time range, as numbers and as dates', async () => {
    const file = bench.write('range.csv', csv(LOG));
    const expected = sorted(LOG.filter(({ time }) => time >= START + 10 && time < START + 30));
    const numbers = await bench.build({ files: [file], from: String(START + 10), to: String(START + 30) });
    expect(contents(numbers.store)).toEqual(expected);
    const dates = await bench.build({ files: [file], from: '2020-09-13T12:26:50', to: '2020-09-13 12:27:10Z' });
    expect(dates.store.fingerprint).toBe(numbers.store.fingerprint);
  });

  it('drop consecutive repeats in the order of the store, not of the file', async () => {
    const file = bench.write('repeats.csv', 'user,item,time\n1,a,3\n1,a,1\n1,b,2\n1,b,2\n2,b,1\n1,a,3\n');
    const { store } = await bench.build({ files: [file], dropRepeats: true, timeUnit: 's' });
    expect(contents(store).map(({ user, item, time }) => `${user}${item}${time}`)).toEqual([
      '1a1',
      '1b2',
      '1a3',
      '2b1',
    ]);
  });

  it('keep ratings and actions', async () => {
    const file = bench.write(
      'rated.csv',
      'user,item,time,rating,action,click,like\n1,a,1,5,7,1,0\n1,b,2,2,8,0,1\n1,c,3,4,9,0,0\n',
    );
    const items = async (input: object) =>
      contents((await bench.build({ files: [file], ...input })).store).map(({ item }) => item);
    expect(await items({ minRating: 4 })).toEqual(['a', 'c']);
    expect(await items({ actions: ['8', '9'] })).toEqual(['b', 'c']);
    expect(await items({ actionBits: ['click', 'like'], actions: ['like'] })).toEqual(['b']);
    expect(await items({ actionBits: ['click', 'like'], actions: ['like', 'click'] })).toEqual(['a', 'b']);
    await expect(items({ actionBits: ['click'], actions: ['love'] })).rejects.toThrow(/'love' is not an action/);
  });

  it('split by time and by user on what is stored', async () => {
    const file = bench.write('split.csv', csv(LOG));
    const { store } = await bench.build({ files: [file], split: `time:${START + 40},${START + 60}` });
    const parts = [0, 0, 0];
    for (let u = 0; u < store.users; u++) {
      for (const [i, time] of (store.sequence(u).times ?? []).entries()) {
        const part = i < (store.split.trainEnd[u] ?? 0) ? 0 : i < (store.split.validationEnd[u] ?? 0) ? 1 : 2;
        expect(part).toBe(time < START + 40 ? 0 : time < START + 60 ? 1 : 2);
        parts[part] = (parts[part] ?? 0) + 1;
      }
    }
    const { train, validation, test } = store.index.split;
    expect([train, validation, test]).toEqual(parts);
    const byUser = await bench.build({ files: [file], split: 'user:0.3' });
    expect(byUser.report.split.train).toBeLessThan(80);
    await expect(bench.build({ files: [file], time: 'none', split: 'time:5' })).rejects.toThrow(/needs times/);
  });
});
