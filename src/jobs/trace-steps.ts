// Writes the first steps of a run as one Chrome trace: the spans of all streams of all ranks, by stage and lane. Each rank
// measures its clock offset to rank 0, which writes the file, at the beginning and at the end.

import { alignClock, type ClockOffset } from '../dist/comm/align-clock.js';
import type { Communicator } from '../dist/comm/communicator.js';
import { type Span, TRACE_BEGIN, TRACE_END, traceEvents, traceNames, traceText } from '../events/chrome-trace.js';
import type { RunEvent } from '../events/event.js';
import { STREAMS } from '../native/call.js';
import type { Device } from '../native/device.js';
import { STAGES } from '../train/stages.js';
import { AtomicFile } from '../util/atomic-file.js';

/** Enough to see the pattern; viewers struggle with much more. */
export const TRACED_STEPS = 50;
/** Maximum spans of all ranks; with many per step the trace ends earlier. */
const MOST_SPANS = 400_000;
/** Maximum spans in flight to rank 0 at a time. */
const SPANS_AT_ONCE = 20_000;

/** Clock offset relative to rank 0. */
interface ClockReading extends ClockOffset {
  at: number;
}

export class StepTrace {
  readonly #device: Device;
  readonly #world: Communicator;
  readonly #begin: ClockReading;
  readonly #spans: Span[] = [];
  #steps = 0;

  private constructor(device: Device, world: Communicator, begin: ClockReading) {
    this.#device = device;
    this.#world = world;
    this.#begin = begin;
    device.recordSpans(true);
  }

  /** Collective. */
  static async start(device: Device, world: Communicator): Promise<StepTrace> {
    return new StepTrace(device, world, await readClock(device, world));
  }

  /** Collects what was recorded since the last step. */
  see(event: RunEvent): void {
    const most = MOST_SPANS / this.#world.size;
    if (event.kind !== 'step' || this.#steps >= TRACED_STEPS || this.#spans.length >= most) return;
    const { spans } = this.#device.spans();
    for (const span of spans.slice(0, most - this.#spans.length)) this.#spans.push(span);
    if (++this.#steps === TRACED_STEPS || this.#spans.length >= most) this.#device.recordSpans(false);
  }

  /** Collective; rank 0 writes. */
  async write(file: string | undefined): Promise<void> {
    const end = await readClock(this.#device, this.#world);
    const named = { rank: this.#world.rank, streams: STREAMS, stages: STAGES };
    const error = Math.max(this.#begin.error, end.error);
    const names = traceText(traceNames(named, error > 0 ? `, clock to ${error.toFixed(0)} us` : ''));
    const spans = this.#spans.map(span => onCommonClock(span, this.#begin, end));
    using out = file === undefined ? undefined : new AtomicFile(file);
    out?.append(Buffer.from(TRACE_BEGIN));
    let lead = '';
    for await (const parts of this.#gather(names, each => traceText(traceEvents(each, named)), spans)) {
      for (const part of parts.filter(({ length }) => length > 0)) {
        out?.append(Buffer.from(lead));
        out?.append(part);
        lead = ',\n';
      }
    }
    out?.append(Buffer.from(TRACE_END));
    out?.commit();
  }

  /** JSON text of all ranks, a bounded number of spans at a time. */
  async *#gather(
    names: string,
    text: (spans: readonly Span[]) => string,
    spans: readonly Span[],
  ): AsyncGenerator<Uint8Array[]> {
    const { size } = this.#world;
    const encode = (words: string) => new TextEncoder().encode(words);
    yield await this.#world.gather(encode(names));
    const each = Math.max(1, Math.floor(SPANS_AT_ONCE / size));
    for (let at = 0; ; at += each) {
      const parts = await this.#world.gather(encode(text(spans.slice(at, at + each))));
      if (parts.every(({ length }) => length === 0)) return;
      yield parts;
    }
  }
}

async function readClock(device: Device, world: Communicator): Promise<ClockReading> {
  const offset = await alignClock(world, () => device.clock());
  return { ...offset, at: device.clock() };
}

/** Clocks may drift: the offset is interpolated linearly between two readings. */
export function onCommonClock(span: Span, begin: ClockReading, end: ClockReading): Span {
  const passed = end.at > begin.at ? (span.start - begin.at) / (end.at - begin.at) : 0;
  const offset = begin.offset + (end.offset - begin.offset) * passed;
  return { ...span, start: span.start - offset, end: span.end - offset };
}
