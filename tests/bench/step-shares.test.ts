import { expect, test } from 'vitest';
import { sharesOf, timesOf, unionLength } from '../../src/bench/ranks/step-shares.js';
import type { Span } from '../../src/events/chrome-trace.js';

const span = (stream: string, start: number, end: number): Span => ({ stream, op: 'x', lane: 0, stage: 0, start, end });

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
  const spans = [span('compute', 0, 4e6), span('sparse', 3e6, 5e6), span('comm', 4e6, 8e6)];
  expect(timesOf(spans, 10)).toEqual({ wall: 10, busy: 5, bare: 3 });
});

test('shares add up, and waiting for the slowest rank is no communication', () => {
  const slow = { wall: 10, busy: 8, bare: 1 };
  const fast = { wall: 10, busy: 6, bare: 3 };
  const shares = sharesOf([[slow], [fast]]);
  expect(shares).toEqual({ compute_ratio: 0.7, exposed_comm: 0.1, wait: 0.1, free: 0.1 });
});
