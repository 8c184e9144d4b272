import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isNode, LaneSum, lanesOf } from '../../src/train/lane-tree.js';

/** The tree as its definition says it, written down: (left+right), absent parts skipped. */
function written(from: number, to: number, empty: ReadonlySet<number>): string | undefined {
  if (to - from === 1) return empty.has(from) ? undefined : String(from);
  let split = 1;
  while (split * 2 < to - from) split *= 2;
  const [left, right] = [written(from, from + split, empty), written(from + split, to, empty)];
  return left === undefined || right === undefined ? (left ?? right) : `(${left}+${right})`;
}

const sumOf = (lanes: number) => new LaneSum<string>(lanes, (left, right) => `(${left}+${right})`);
const laneOf = (lane: number, empty: ReadonlySet<number>) => (empty.has(lane) ? undefined : String(lane));

test('the sum is one tree for any number of workers and any empty lanes', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 40 }),
      fc.array(fc.nat(39)),
      (lanes, workers, holes) => {
        const empty = new Set(holes);
        const whole = sumOf(lanes);
        for (let worker = 0; worker < workers; worker++) {
          const { from, to } = lanesOf(lanes, worker, workers);
          const part = sumOf(lanes);
          for (let lane = from; lane < to; lane++) part.put(lane, laneOf(lane, empty));
          for (const partial of part.partials) {
            expect(isNode(lanes, partial)).toBe(true);
            whole.putNode(partial);
          }
        }
        expect(whole.total()).toBe(written(0, lanes, empty));
      },
    ),
  );
});

test('one worker keeps at most one node per level', () => {
  for (const lanes of [1, 2, 3, 7, 8, 9, 31, 64]) {
    const sum = sumOf(lanes);
    let most = 0;
    for (let lane = 0; lane < lanes; lane++) {
      // The lane being computed counts too.
      most = Math.max(most, sum.partials.length + 1);
      sum.put(lane, String(lane));
    }
    expect(most).toBeLessThanOrEqual(Math.floor(Math.log2(lanes)) + 1);
    expect(sum.partials).toHaveLength(1);
  }
});

test('lanes out of order and sums that are not complete are refused', () => {
  const sum = sumOf(4);
  sum.put(0, 'a');
  expect(() => sum.put(2, 'c')).toThrow('do not follow lane 0');
  expect(() => sum.total()).toThrow('only 0 to 0');
});
