// Whatever the log: every event is in exactly one place, in (user, time, input order), and the parts of the split are disjoint.
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type Event, Workbench, contents, csv } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

const START = 1_600_000_000;

/** Few users, items and times, so that ties, repeats, single events and long users all occur. */
function logs(id: (n: number) => string, compareIds: CompareIds): fc.Arbitrary<Event[]> {
  const event = fc
    .tuple(fc.nat(6), fc.nat(9), fc.nat(4))
    .map(([user, item, time]) => ({ user: id(user * user), item: id(item), time: START + time }));
  const events = fc.array(event, { minLength: 1, maxLength: 120 });
  return fc.tuple(events, fc.nat()).map(([all, at]) => {
    // In order up to some place: a log may lie in order, or begin so.
    const tidy = at % (all.length + 1);
    return [...stableOrder(all.slice(0, tidy), compareIds), ...all.slice(tidy)];
  });
}

type CompareIds = (a: string, b: string) => number;

function byCodePoint(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function stableOrder(events: readonly Event[], compareIds: CompareIds): Event[] {
  return [...events].sort((a, b) => compareIds(a.user, b.user) || a.time - b.time);
}

describe('preparing', () => {
  const kinds = [
    { name: 'numbers from 0', id: String, compare: (a: string, b: string) => Number(a) - Number(b) },
    { name: 'integers', id: (n: number) => String(n - 3), compare: (a: string, b: string) => Number(a) - Number(b) },
    {
      name: 'integers in a wide range',
      id: (n: number) => String(n * 10 ** 12),
      compare: (a: string, b: string) => Number(a) - Number(b),
    },
    { name: 'texts', id: (n: number) => `${['z', 'ß', '7', 'é', '🙂'][n % 5]}-${n}`, compare: byCodePoint },
  ];
  it.each(kinds)('puts every event of $name in its place', async ({ id, compare }) => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(logs(id, compare), async events => {
        const file = bench.write(`${run++}.csv`, csv(events));
        const { store, report } = await bench.build({ files: [file] });
        expect(contents(store)).toEqual(stableOrder(events, compare));
        expect(report.events).toBe(events.length);

        const seen = new Map<string, number>();
        for (const { item } of events) seen.set(item, (seen.get(item) ?? 0) + 1);
        const ranked = [...seen].sort(([a, m], [b, n]) => n - m || compare(a, b)).map(([item]) => item);
        expect(ranked.map((_, dense) => store.originalItem(dense))).toEqual(ranked);
        expect(ranked.map(item => store.itemId(item))).toEqual(ranked.map((_, dense) => dense));
        expect(store.itemId('nobody')).toBeUndefined();

        for (let u = 0; u < store.users; u++) {
          const [n, train, validation] = [store.length(u), store.split.trainEnd[u], store.split.validationEnd[u]];
          expect([train, validation]).toEqual(n >= 3 ? [n - 2, n - 1] : [n, n]);
          expect(store.userId(store.originalUser(u))).toBe(u);
        }
      }),
      { numRuns: 8 },
    );
  });

  it('sorts users with ids up to the largest 64-bit integer', async () => {
    const users = ['9223372036854775806', '9218868437227405313', '9223372036854775800', '4'];
    const rows = users.map((user, i) => ({ user, item: String(i), time: START }));
    const { store } = await bench.build({ files: [bench.write('wide.csv', csv(rows))], idType: 'integer' });
    const sorted = [3, 1, 2, 0].map(i => users[i]);
    expect(sorted.map((_, u) => store.originalUser(u))).toEqual(sorted);
    expect(contents(store).map(({ item }) => item)).toEqual(['3', '1', '2', '0']);
  });

  it('keeps users whose ids SQL text cannot hold', async () => {
    const users = ["o'\0b", 'z', "o'", "o'\0b"];
    const rows = users.map((user, i) => ({ user, item: String(i), time: START }));
    const { store } = await bench.build({ files: [bench.write('nul.csv', csv(rows))] });
    expect(contents(store).map(({ item }) => item)).toEqual(['2', '0', '3', '1']);
  });

  it('keeps the order of the rows when a large file is read by several threads', async () => {
    const rows = Array.from({ length: 200_000 }, (_, i) => ({ user: String(i % 3), item: String(i), time: START }));
    const { store } = await bench.build({ files: [bench.write('large.csv', csv(rows))], idType: 'integer' });
    const items = store.sequence(1).items;
    let ordered = true;
    for (let i = 1; i < items.length; i++) ordered &&= Number(store.originalItem(items[i] ?? 0)) === 3 * i + 1;
    expect(items.length).toBe(66_667);
    expect(ordered).toBe(true);
  });

  it('does not depend on the number of threads', async () => {
    const rows = Array.from({ length: 50_000 }, (_, i) => ({
      user: String((i * 7) % 101),
      item: String((i * i) % 997),
      time: START + ((i * 31) % 50),
    }));
    const files = [bench.write('threads.csv', csv(rows))];
    const one = await bench.build({ files, threads: 1 });
    const three = await bench.build({ files, threads: 3 });
    expect(three.store.fingerprint).toBe(one.store.fingerprint);
    expect(three.store.index.shards).toEqual(one.store.index.shards);
    expect(three.store.index.vocabulary).toEqual(one.store.index.vocabulary);
  });
});
