import { expect, test } from 'vitest';
import type { ScaleSpec } from '../../src/bench/ranks/scale-program.js';
import type { TurnTimes } from '../../src/bench/ranks/turn-shares.js';
import { rowOf } from '../../src/bench/scale.js';

const turn = (wall: number): TurnTimes => ({ wall, busy: 0.9 * wall, bare: 0.1 * wall, comm: 0.2 * wall });
const size: ScaleSpec['size'] = { kind: 'hstu', d: 8, blocks: 1, heads: 1, tokens: 64, rows: 10, pool: 4 };

test('a round lasts until both ranks are done, and ranks are compared with the copies of the same round', () => {
  // The machine becomes twice as slow after the first round; the second copy is the slower one.
  const times = {
    alone: [turn(1), turn(2), turn(2)],
    copies: [
      [turn(1), turn(1.2)],
      [turn(2), turn(2.4)],
      [turn(2), turn(2.4)],
    ],
    together: [1.25, 2.5, 3].map(wall => [turn(wall), turn(wall)]),
  };
  const row = rowOf('small', { size, steps: 1, turns: 3 }, times);
  expect(row).toMatchObject({ model: 'small', d: 8, tokens: 64 });
  expect(row.efficiency).toBeCloseTo(2 / 2.5);
  expect(row.limit).toBeCloseTo(2 / 2.4);
  expect(row.of_limit).toBeCloseTo(0.96); // of .96, .96 and .8
  expect(row.compute_ratio).toBeCloseTo(0.9);
});
