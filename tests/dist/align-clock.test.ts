import { expect, test } from 'vitest';
import { alignClock, offsetFrom } from '../../src/dist/comm/align-clock.js';
import { SingleRank } from '../../src/dist/comm/single-rank.js';

test('the bounds of several gathers hold the true offset, and close in', () => {
  const apart = 1000;
  // Who comes last to a gather spends little time in it. Begin and end of both, by the first one's clock:
  const gathers = [
    [0, 50, 45, 52], // the second is late
    [100, 160, 60, 130], // the first is late
    [200, 203, 198, 206],
  ] as const;
  const theirs = gathers.map(([begin, end]) => [begin, end] as const);
  const own = gathers.map(([, , begin, end]) => [begin + apart, end + apart] as const);
  const { offset, error } = offsetFrom(theirs, own);
  expect(Math.abs(offset - apart)).toBeLessThanOrEqual(error);
  expect(error).toBeLessThanOrEqual(5.5);
  expect(offsetFrom(theirs.slice(0, 1), own.slice(0, 1)).error).toBeGreaterThan(error);
});

test('one rank has one clock', async () => {
  expect(await alignClock(new SingleRank(), () => 7)).toEqual({ offset: 0, error: 0 });
});
