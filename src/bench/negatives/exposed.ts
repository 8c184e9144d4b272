// Exposed time of the negative path: time in which it runs and nothing else is computed. On an accelerator's host the hidden
// part would be free; here it shares the cores, which shows in the step time.

import type { Span } from '../../events/chrome-trace.js';

/** Microseconds of the spans in `path` that no other span of the compute stream covers. */
export function exposedTime(spans: readonly Span[], isPath: (span: Span) => boolean): number {
  const busy = merged(spans.filter(span => span.stream === 'compute' && !isPath(span)));
  return merged(spans.filter(isPath)).reduce((sum, [start, end]) => sum + (end - start) - covered(busy, start, end), 0);
}

type Interval = [start: number, end: number];

/** Sorted and merged. */
function merged(spans: readonly Span[]): Interval[] {
  const intervals: Interval[] = [];
  for (const { start, end } of spans.toSorted((a, b) => a.start - b.start)) {
    const last = intervals.at(-1);
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else intervals.push([start, end]);
  }
  return intervals;
}

function covered(busy: readonly Interval[], start: number, end: number): number {
  return busy.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, end) - Math.max(from, start)), 0);
}
