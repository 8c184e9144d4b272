import { expect, test } from 'vitest';
import { scheduleFactor } from '../../src/optim/schedule.js';

test('warm-up reaches the peak at its last step, and the end reaches the floor', () => {
  for (const kind of ['linear', 'cosine'] as const) {
    const schedule = { kind, warmup: 10, floor: 0.1 };
    expect(scheduleFactor(schedule, 1, 110)).toBeCloseTo(0.1);
    expect(scheduleFactor(schedule, 10, 110)).toBe(1);
    expect(scheduleFactor(schedule, 60, 110)).toBeCloseTo(0.55);
    expect(scheduleFactor(schedule, 110, 110)).toBeCloseTo(0.1);
    expect(scheduleFactor(schedule, 500, 110)).toBeCloseTo(0.1);
  }
});

test('constant stays, without warm-up from the first step', () => {
  expect(scheduleFactor({ kind: 'constant', warmup: 0, floor: 0 }, 1, 100)).toBe(1);
  expect(scheduleFactor({ kind: 'constant', warmup: 0, floor: 0 }, 100, 100)).toBe(1);
});
