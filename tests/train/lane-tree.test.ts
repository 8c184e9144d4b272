import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { groupLanes, isNode, type LaneRange, LaneSum, lanesOf, nodesOf, putNodes } from '../../src/train/lane-tree.js';

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

test('the nodes of a rank and of a group of ranks are known before they are summed', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.nat(39)),
      (lanes, groups, size, holes) => {
        const ranks = groups * size;
        const empty = new Set(holes);
        const isBusy = (lane: number) => !empty.has(lane);
        for (let group = 0; group < groups; group++) {
          const range = groupLanes(lanes, group, { size, ranks });
          const sum = sumOf(lanes);
          const members = Array.from({ length: size }, (_, r) => lanesOf(lanes, group * size + r, ranks));
          const nodes = members.flatMap(own => nodesOf(lanes, own, isBusy));
          putNodes(
            sum,
            range,
            nodes.map(({ from, to }) => ({ from, to, value: written(from, to, empty) })),
          );
          const summed = sum.partials.filter(({ value }) => value !== undefined);
          const ends = ({ from, to }: LaneRange) => [from, to];
          expect(nodesOf(lanes, range, isBusy).map(ends)).toEqual(summed.map(ends));
          for (const { from, to, value } of summed) expect(value).toBe(written(from, to, empty));
        }
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
