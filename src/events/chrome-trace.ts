// Spans of streams as a Chrome trace: open the file in chrome://tracing or https://ui.perfetto.dev. Ranks are its
// processes, streams their threads.

/** One command of a stream; times in microseconds of one monotonic clock. */
export interface Span {
  stream: string;
  op: string;
  /** -1 if the op belongs to no lane. */
  lane: number;
  /** Index of a stage of the step, -1 for none. */
  stage: number;
  start: number;
  end: number;
}

export interface TraceOptions {
  /** Names in the order of the threads. */
  streams: readonly string[];
  /** Names indexed by `Span.stage`. */
  stages: readonly string[];
  rank: number;
}

export const TRACE_BEGIN = '{"traceEvents":[\n';
export const TRACE_END = '\n]}\n';

/** Metadata events that name a rank and its streams; `note` is appended to the rank's name. */
export function traceNames({ rank, streams }: TraceOptions, note = ''): object[] {
  const process = { name: 'process_name', ph: 'M', pid: rank, args: { name: `rank ${rank}${note}` } };
  const order = { name: 'process_sort_index', ph: 'M', pid: rank, args: { sort_index: rank } };
  const threads = streams.map((name, tid) => ({ name: 'thread_name', ph: 'M', pid: rank, tid, args: { name } }));
  return [process, order, ...threads];
}

export function traceEvents(spans: readonly Span[], { rank, streams, stages }: TraceOptions): object[] {
  return spans.map(({ stream, op, lane, stage, start, end }) => ({
    name: op,
    cat: stages[stage] ?? 'op',
    ph: 'X',
    pid: rank,
    tid: streams.indexOf(stream),
    ts: start,
    dur: end - start,
    args: { ...(lane >= 0 && { lane }), ...(stages[stage] !== undefined && { stage: stages[stage] }) },
  }));
}

/** Events as comma-separated JSON, without the enclosing brackets. */
export function traceText(events: readonly object[]): string {
  return events.map(event => JSON.stringify(event)).join(',\n');
}
