// Time of some spans that no computing covers.
import { expect, test } from 'vitest';
import { exposedTime } from '../../src/bench/negatives/exposed.js';
import type { Span } from '../../src/events/chrome-trace.js';

const span = (stream: Span['stream'], op: string, start: number, end: number): Span => ({
  stream,
  op,
  lane: 0,
  stage: 0,
  start,
  end,
});
const exposed = (...spans: Span[]) => exposedTime(spans, ({ op }) => op === 'draw');

test('work beside computing is hidden, the rest and work on the compute stream is not', () => {
  expect(exposed(span('sparse', 'draw', 0, 10), span('compute', 'gemm', 0, 10))).toBe(0);
  expect(exposed(span('sparse', 'draw', 0, 10), span('compute', 'gemm', 4, 6), span('compute', 'gemm', 8, 20))).toBe(6);
  expect(exposed(span('compute', 'draw', 0, 10))).toBe(10);
  // Two at the same time are seen once.
  expect(exposed(span('sparse', 'draw', 0, 10), span('compute', 'draw', 5, 12))).toBe(12);
  expect(exposed(span('sparse', 'other', 0, 10))).toBe(0);
});
