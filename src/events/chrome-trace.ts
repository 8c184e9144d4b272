// Spans of streams as a Chrome trace: open the file in chrome://tracing or https://ui.perfetto.dev.

/** One command of a stream; times in microseconds of one monotonic clock. */
export interface Span {
  stream: string;
  op: string;
  /** -1 when the op belongs to no lane. */
  lane: number;
  /** Index of a stage of the step, -1 for none. */
  stage: number;
  start: number;
  end: number;
}

/** `rank` becomes the process of the trace; `stages` are the names that `Span.stage` counts in. */
export interface TraceOptions {
  rank?: number;
  stages?: readonly string[];
}

/** Trace events, one row per stream. Files of several ranks can be joined by concatenating their events. */
export function chromeTraceEvents(spans: readonly Span[], { rank = 0, stages = [] }: TraceOptions = {}): object[] {
  const streams = [...new Set(spans.map(span => span.stream))];
  const rows = streams.map((stream, tid) => ({ name: 'thread_name', ph: 'M', pid: rank, tid, args: { name: stream } }));
  const process = { name: 'process_name', ph: 'M', pid: rank, args: { name: `rank ${rank}` } };
  const events = spans.map(({ stream, op, lane, stage, start, end }) => ({
    name: op,
    cat: stages[stage] ?? 'op',
    ph: 'X',
    pid: rank,
    tid: streams.indexOf(stream),
    ts: start,
    dur: end - start,
    args: { ...(lane >= 0 && { lane }), ...(stages[stage] !== undefined && { stage: stages[stage] }) },
  }));
  return [process, ...rows, ...events];
}

/** The whole file. */
export function chromeTrace(spans: readonly Span[], options?: TraceOptions): string {
  return `{"traceEvents":[\n${chromeTraceEvents(spans, options)
    .map(event => JSON.stringify(event))
    .join(',\n')}\n]}\n`;
}
