// Spans: what every stream did, when, and for which lane and stage.
import { describe, expect, it } from 'vitest';
import { TRACE_BEGIN, TRACE_END, traceEvents, traceNames, traceText } from '../../src/events/chrome-trace.js';
import { Device } from '../../src/native/device.js';

describe('streams side by side', () => {
  it('compute at the same time, and their spans say so', async () => {
    using other = Device.open({ threads: 2 });
    const out = [other.tensor([1, 2], 'i64'), other.tensor([1, 2], 'i64')] as const;
    other.recordSpans(true);
    other.call('fma_peak').number(20_000_000).tensor(out[0]).submit('compute');
    other.tag(3, 1);
    other.call('fma_peak').number(1000).tensor(out[1]).submit('sparse');
    await other.sync();
    const { spans, lost } = other.spans();
    const [long, short] = [
      spans.find(span => span.stream === 'compute')!,
      spans.find(span => span.stream === 'sparse')!,
    ];
    expect(short.end).toBeLessThan(long.end);
    expect(short).toMatchObject({ op: 'fma_peak', lane: 3, stage: 1 });
    expect(long).toMatchObject({ op: 'fma_peak', lane: -1, stage: -1 });
    expect(long.end - long.start).toBeGreaterThan(100);
    expect(lost).toBe(0);
    const named = { rank: 2, streams: ['compute', 'sparse', 'comm'], stages: ['read', 'dense'] };
    const text = traceText([...traceNames(named), ...traceEvents(spans, named)]);
    const written: { traceEvents: object[] } = JSON.parse(TRACE_BEGIN + text + TRACE_END);
    expect(written.traceEvents).toContainEqual(
      expect.objectContaining({
        name: 'fma_peak',
        cat: 'dense',
        ph: 'X',
        pid: 2,
        tid: 1,
        ts: short.start,
        args: { lane: 3, stage: 'dense' },
      }),
    );
    expect(other.spans().spans).toEqual([]);
    other.recordSpans(false);
    other.call('fma_peak').number(1000).tensor(out[1]).submit();
    await other.sync();
    expect(other.spans()).toEqual({ spans: [], lost: 0 });
  });

  it('keep the latest spans and count the lost ones', async () => {
    using other = Device.open({ threads: 1 });
    using x = other.tensor([1, 1]);
    other.recordSpans(true);
    for (let i = 0; i < 70_000; i++) {
      if (i % 1000 === 0) other.tag(i / 1000);
      other.call('fill_constant').number(i).tensor(x).submit();
    }
    await other.read(x);
    const { spans, lost } = other.spans();
    expect([spans.length, lost]).toEqual([65_536, 70_001 - 65_536]);
    expect([spans[0]!.lane, spans.at(-1)!.lane]).toEqual([4, 69]);
    expect(spans.every((span, i) => i === 0 || span.start >= spans[i - 1]!.end)).toBe(true);
  });
});
