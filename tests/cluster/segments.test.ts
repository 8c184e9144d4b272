// Rows of negatives that their owners send segment by segment: the bits of one rank, and no more memory than two segments,
// whatever the number of negatives.

import { beforeAll, expect, test } from 'vitest';
import { MPIS } from './mpi.js';
import { runWays } from './run-ways.js';
import { smallStore } from './small-store.js';
import { SEGMENTED, type Way, type WayResult, wayOf } from './ways.js';

const store = smallStore();
const READY = MPIS.length > 0;

/** Five lanes: on four ranks, three of them only answer in the second round. */
const equal: Way[] = Object.keys(SEGMENTED)
  .flatMap(setting => [
    wayOf(setting, { ranks: 1, groupSize: 1 }),
    wayOf(setting, { ranks: 2, groupSize: 2, segment: 5 }),
    wayOf(setting, { ranks: 3, groupSize: 3, segment: 7, threads: 2, overlap: 'off' }),
    wayOf(setting, { ranks: 4, groupSize: 2, segment: 5, pipeline: 3 }),
  ])
  .map(way => ({ ...way, items: 2500 }));

const [ITEMS, WIDTH, DRAWS] = [60_000, 256, 128];
const SEGMENT = 8;

/** One lane per rank, which reads most of the table. */
function memoryWay(segment: number, count: number): Way {
  const way = wayOf('FP16, clip', { ranks: 2, groupSize: 2, segment });
  const own = [`model.d=${WIDTH}`, 'batch.tokens=500', 'batch.lanes=2', `loss.negatives.count=${count}`];
  return { ...way, settings: [...way.settings.filter(s => !/^(model.d|batch|.*count)/.test(s)), ...own], items: ITEMS };
}

const memory = [memoryWay(SEGMENT, 1), memoryWay(SEGMENT, DRAWS), memoryWay(0, DRAWS)];

let all: readonly (Way & WayResult)[] = [];

beforeAll(async () => {
  if (READY) all = await runWays(store, [...equal, ...memory], 3);
}, 600_000);

test.skipIf(!READY).each(Object.keys(SEGMENTED))('%s: the bits of one rank', setting => {
  const ways = all.slice(0, equal.length).filter(({ name }) => name.startsWith(`${setting}:`));
  expect(ways).toHaveLength(4);
  for (const { name, ranks, factors, digest, losses } of ways) {
    expect({ name, digest, losses }).toEqual({ name, digest: ways[0]!.digest, losses: ways[0]!.losses });
    expect(factors).toBe(ranks > 1); // otherwise nothing was fetched in segments
  }
});

test.skipIf(!READY)('negatives of a sharded table take the memory of segments, not of all draws', () => {
  const [single, segments, whole] = all.slice(equal.length);
  expect([single!.factors, segments!.factors, whole!.factors]).toEqual([true, true, false]);
  const added = (way: WayResult): number => Math.max(...way.reserved.map((bytes, i) => bytes - single!.reserved[i]!));
  const tensor = 500 * DRAWS * WIDTH * 4;
  // Two segments to read and two to send are 5 %; the rest are ids, coefficients and what sorting them takes.
  expect(added(segments!)).toBeLessThan(0.2 * tensor);
  expect(added(whole!)).toBeGreaterThan(0.5 * tensor);
});
