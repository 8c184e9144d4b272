import { expect, test } from 'vitest';
import { turnShares, turnTimes } from '../../src/bench/ranks/turn-shares.js';
import type { Span } from '../../src/events/chrome-trace.js';
import { meanShares, rankShares, timesOf, unionLength } from '../../src/train/step-shares.js';

const span = (stream: string, start: number, end: number, op = stream === 'comm' ? 'comm_barrier' : 'add'): Span => {
  return { stream, op, lane: 0, stage: 0, start, end };
};

test('intervals that overlap are counted once', () => {
  expect(unionLength([])).toBe(0);
  const intervals = [
    [5, 7],
    [0, 2],
    [1, 3],
    [6, 6.5],
  ] as const;
  expect(unionLength(intervals)).toBe(5);
});

test('an exchange counts where no kernel runs beside it', () => {
  const spans = [span('compute', 1e6, 5e6), span('sparse', 4e6, 6e6), span('comm', 5e6, 9e6)];
  expect(timesOf(spans, 10)).toEqual({ wall: 10, busy: 5, bare: 3 });
  expect(timesOf(spans)).toEqual({ wall: 8, busy: 5, bare: 3 });
  expect(timesOf([])).toEqual({ wall: 0, busy: 0, bare: 0 });
  expect(turnTimes(spans, 10)).toEqual({ wall: 10, busy: 5, bare: 3, comm: 4 });
  // A kernel on the stream of exchanges is computing.
  const updated = [...spans, span('comm', 9e6, 10e6, 'adamw')];
  expect(turnTimes(updated, 10)).toEqual({ wall: 10, busy: 6, bare: 3, comm: 4 });
});

test('shares of a rank add up, and waiting for the slowest one is no communication', () => {
  const slow = { wall: 10, busy: 8, bare: 1 };
  const fast = { wall: 10, busy: 6, bare: 3 };
  const [first, second] = rankShares([slow, fast]);
  expect(first).toEqual({ computing: 0.8, exposed: 0.1, waiting: 0, free: 0.1 });
  expect(second).toEqual({ computing: 0.6, exposed: 0.1, waiting: 0.2, free: 0.1 });
  const turn = [
    { ...slow, comm: 4 },
    { ...fast, comm: 5 },
  ];
  const shares = { compute_ratio: 0.7, exposed_comm: 0.1, wait: 0.1, free: 0.1, comm: 0.45 };
  expect(turnShares([turn])).toEqual(shares);
});

test('means are weighted', () => {
  const [some, none] = rankShares([
    { wall: 1, busy: 1, bare: 0 },
    { wall: 0, busy: 0, bare: 0 },
  ]);
  expect(meanShares([some!, none!], [3, 1])).toEqual({ computing: 0.75, exposed: 0, waiting: 0, free: 0.25 });
  expect(meanShares([], [])).toBeUndefined();
});
