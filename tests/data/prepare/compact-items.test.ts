import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { invert, rank } from '../../../src/data/prepare/compact-items.js';

describe('ranking by count', () => {
  it('equals a plain sort by (descending count, ascending place), with counts on both sides of the bucket limit', () => {
    const count = fc.oneof(
      fc.integer({ min: -1, max: 3 }),
      fc.integer({ min: 65_534, max: 65_538 }),
      fc.nat(2 ** 31 - 1),
    );
    fc.assert(
      fc.property(fc.array(count, { maxLength: 60 }), list => {
        const counts = Int32Array.from(list);
        const { byRank, seen } = rank(counts);
        // -1 is an item without events, 0 no item.
        const items = list.map((n, place) => ({ n, place })).filter(({ n }) => n !== 0);
        const expected = items.sort((a, b) => b.n - a.n || a.place - b.place).map(({ place }) => place);
        expect([...byRank]).toEqual(expected);
        expect([...invert(byRank, counts)]).toEqual(list.map((_, place) => expected.indexOf(place)));
        expect(seen).toBe(list.filter(n => n > 0).length);
      }),
    );
  });
});
