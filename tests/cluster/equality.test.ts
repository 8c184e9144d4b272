// The bits of a run do not depend on ranks, groups, threads or overlap, for rows read fresh, stale and exact; a table that
// is sharded over ranks is trained like a whole one. The long form is scripts/equality-matrix.mjs.

import { beforeAll, expect, test } from 'vitest';
import { isDivided } from '../../src/dist/shard/place-table.js';
import { SQUARE_TILE } from '../../src/ops/square-sum.js';
import { MPIS } from './mpi.js';
import { runWays } from './run-ways.js';
import { smallStore } from './small-store.js';
import { SETTINGS, type Staleness, type Way, type WayResult, wayOf } from './ways.js';

const store = smallStore();
const READY = MPIS.length > 0;

beforeAll(async () => {
  if (!READY) return;
  const settings = [...Object.keys(SETTINGS), 'pool'].flatMap(waysOf);
  all = await runWays(store, [...settings, ...saturated, ...unclipped, ...wide], 4);
}, 900_000);

const wide = [
  wayOf('wide', { ranks: 1, groupSize: 1 }),
  wayOf('wide', { ranks: 2, groupSize: 2 }),
  wayOf('wide', { ranks: 2, groupSize: 1, overlap: 'off' }),
  wayOf('wide', { ranks: 3, groupSize: 3 }),
];

/** Without a norm to wait for, parameters are updated during backward. */
const unclipped = [
  wayOf('wide, not clipped', { ranks: 1, groupSize: 1 }),
  wayOf('wide, not clipped', { ranks: 2, groupSize: 2 }),
  wayOf('wide, not clipped', { ranks: 3, groupSize: 1 }),
  wayOf('wide, not clipped', { ranks: 2, groupSize: 1, overlap: 'off' }),
];

/** Coefficients of many positives are exactly 0: such a row, if its lane has no other use for it, has no gradient. */
const saturated = [
  wayOf('bce', { ranks: 1, groupSize: 1, staleness: 'exact' }),
  ...([0, 'exact'] as const).flatMap(staleness => [
    wayOf('bce, saturated', { ranks: 1, groupSize: 1, staleness }),
    ...[2, 4].flatMap(ranks => [1, 2].map(groupSize => wayOf('bce, saturated', { ranks, groupSize, staleness }))),
    wayOf('bce, saturated', { ranks: 4, groupSize: 4, staleness }),
  ]),
];

/** Every way, in one start of the ranks. */
let all: readonly (Way & WayResult)[] = [];

function waysOf(setting: string): Way[] {
  if (setting.includes('FP16')) return segmentedWays(setting);
  const ahead: Staleness[] = /full|adamw/.test(setting) ? [0] : [0, 1, 2, 'exact'];
  return ahead.flatMap(staleness => [
    wayOf(setting, { ranks: 1, groupSize: 1, overlap: 'off', staleness }),
    wayOf(setting, { ranks: 3, groupSize: 3, threads: 2, overlap: 'off', staleness }),
    wayOf(setting, { ranks: 4, groupSize: 2, staleness }),
    ...(staleness === 0
      ? [2, 1].map(groupSize => wayOf(setting, { ranks: 2, groupSize, pipeline: groupSize * 3 }))
      : []),
  ]);
}

/** Negatives in segments and all at once, on 1 to 4 ranks. */
function segmentedWays(setting: string): Way[] {
  return [0, 5].flatMap(segment => [
    wayOf(setting, { ranks: 1, groupSize: 1, overlap: 'off', segment }),
    wayOf(setting, { ranks: 2, groupSize: 2, segment }),
    wayOf(setting, { ranks: 3, groupSize: 3, threads: 2, segment }),
    wayOf(setting, { ranks: 4, groupSize: 2, segment }),
    wayOf(setting, { ranks: 4, groupSize: 4, segment, staleness: 'exact' }),
  ]);
}

test.skipIf(!READY).each([...Object.keys(SETTINGS), 'pool'])('%s', setting => {
  const ways = all.filter(({ name }) => name.startsWith(`${setting}:`));
  for (const { name, kind, digest, losses } of ways) {
    const reference = ways.find(way => way.kind === kind)!;
    expect({ name, digest, losses }).toEqual({ name, digest: reference.digest, losses: reference.losses });
  }
  const digests = new Set(ways.map(({ digest }) => digest));
  expect(digests.size).toBe(new Set(ways.map(({ kind }) => kind)).size); // staleness is no label: 0, 1 and 2 differ
});

test.skipIf(!READY)('rows without a gradient stay untouched when those that both steps read are summed first', () => {
  const ways = all.filter(({ name }) => name.startsWith('bce, saturated:'));
  for (const { name, digest, losses } of ways) {
    expect({ name, digest, losses }).toEqual({ name, digest: ways[0]!.digest, losses: ways[0]!.losses });
  }
  const plain = all.find(({ name }) => name.startsWith('bce:'))!.changed;
  const total = (steps: WayResult['changed']): number => steps.reduce((sum, { changed }) => sum + changed, 0);
  for (const { changed } of ways.filter(({ name }) => name.endsWith('staleness exact'))) {
    // The same rows are read. Fewer of them have changed, so some of them had no gradient.
    expect(changed.map(({ read }) => read)).toEqual(plain.map(({ read }) => read));
    expect(total(changed)).toBeLessThan(total(plain));
  }
});

test.skipIf(!READY)('what is counted stale or sent again does not depend on ranks', () => {
  for (const setting of ['hstu, sampled', 'sasrec']) {
    for (const staleness of [1, 2, 'exact']) {
      const ways = all.filter(({ name }) => name.startsWith(setting) && name.endsWith(`staleness ${staleness}`));
      const { read, changed } = ways[0]!.changed.at(-1)!;
      expect(changed).toBeGreaterThan(0);
      expect(changed).toBeLessThan(read);
      for (const way of ways) expect(way.changed).toEqual(ways[0]!.changed);
    }
  }
});

test.skipIf(!READY)('exact sends rows again before the gradients of others, unless all gradients are clipped', () => {
  for (const { name, ranks, groupSize, parted } of all) {
    const exact = name.includes('staleness exact') && ranks > 1 && groupSize > 1 && !name.includes('clip');
    expect({ name, parted: parted > 0 }).toEqual({ name, parted: exact });
  }
});

test.skipIf(!READY)(
  'between two steps exact sends nothing but rows: one exchange for each list of a rank or a group',
  () => {
    for (const { name, ranks, groupSize, between } of all.filter(({ parted }) => parted > 0)) {
      // Five lanes: the first of several groups has one list, the second two; in one group a rank has up to two.
      expect({ name, between }).toEqual({ name, between: groupSize < ranks ? 1 + 2 : 2 });
    }
  },
);

test.skipIf(!READY)('dense parameters are updated in slices, each on one rank, to the same bits', () => {
  const ways = all.slice(-wide.length);
  for (const { name, digest, losses } of ways) {
    expect({ name, digest, losses }).toEqual({ name, digest: ways[0]!.digest, losses: ways[0]!.losses });
  }
  const [whole] = ways[0]!.state;
  const tile = 2 * 4 * SQUARE_TILE; // m and v
  for (const { ranks, groupSize, state } of ways.filter(({ groupSize: size, ranks: n }) => size === n)) {
    expect(groupSize).toBe(ranks); // so rows are divided too, as evenly
    expect(state.reduce((sum, bytes) => sum + bytes, 0)).toBe(whole);
    for (const bytes of state) expect(Math.abs(bytes - whole! / ranks)).toBeLessThanOrEqual(2 * tile);
  }
});

test.skipIf(!READY)('gradients leave while backward still runs, unless overlap is off', () => {
  const [, early, late] = all.slice(-wide.length);
  for (const lead of early!.leads) expect(lead).toBeGreaterThan(0);
  for (const lead of late!.leads) expect(lead).toBeLessThanOrEqual(0);
});

test.skipIf(!READY)('parameters are updated and sent back while backward still runs, unless overlap is off', () => {
  const [one, two, three, late] = all.slice(-wide.length - unclipped.length, -wide.length);
  for (const { digest, losses } of [two!, three!, late!]) {
    expect({ digest, losses }).toEqual({ digest: one!.digest, losses: one!.losses });
  }
  for (const lead of two!.updateLeads) expect(lead).toBeGreaterThan(0);
  for (const lead of late!.updateLeads) expect(lead).toBeLessThanOrEqual(0);
});

test.skipIf(!READY)('rows sent in FP16 are rounded on one rank too, and change the result a little', () => {
  const [sent, plain] = ['hstu, rows sent in 16 bits', 'hstu, sampled softmax, lazy-adam, clip:'].map(
    setting => all.find(({ name, ranks }) => name.startsWith(setting) && ranks === 1)!,
  );
  expect(sent!.digest).not.toBe(plain!.digest);
  sent!.losses.forEach((loss, step) => expect(Math.abs(loss - plain!.losses[step]!)).toBeLessThan(1e-3));
});

test('tables are divided when they are looked up, large, and have a row for everybody', () => {
  const large = { rows: 100_000, width: 64, readWhole: false, rounded: false };
  expect(isDivided(large, 4)).toBe(true);
  expect(isDivided(large, 1)).toBe(false);
  expect(isDivided({ ...large, readWhole: true }, 4)).toBe(false);
  expect(isDivided({ ...large, rounded: true }, 4)).toBe(false);
  expect(isDivided({ ...large, rows: 200 }, 4)).toBe(false);
  expect(isDivided({ ...large, rows: 20, width: 1024 }, 32)).toBe(false);
});
