// Samples a few steps now and then: what each op costs, how busy the streams are, how each rank's time divides, what uses
// the memory. Spans are recorded only for those steps, so the rest of the run pays nothing.

import type { Communicator } from '../dist/comm/communicator.js';
import type { Span } from '../events/chrome-trace.js';
import type { OpCost, RunEvent, StepsSampled } from '../events/event.js';
import type { Device } from '../native/device.js';
import { joinSamples, type OwnSample } from './rank-samples.js';
import { STAGES } from './stages.js';
import { type StepTimes, timesOf } from './step-shares.js';

/** Steps of one sample, at most. */
const SAMPLED_STEPS = 4;
/** Steps after which the first samples begin, and the interval between later ones. */
const FIRST_SAMPLES = [4, 16, 64];
const EVERY = 256;
/** Limit on spans in a sample; the event log is not a full trace. */
const MOST_SPANS = 1500;

/** Bytes that persist across steps. */
export type HeldBytes = Readonly<Record<string, number>>;

export interface StepSamplerOptions {
  device: Device;
  held: () => HeldBytes;
  world: Communicator;
  /** Steps to skip because the trace reads their spans. */
  skip?: number;
}

/** A completed step. */
export interface SampledStep {
  step: number;
  /** Of this rank. */
  tokens: number;
  /** Whether something other than a step comes next, such as validation, which a sample must not include. */
  pause: boolean;
}

export class StepSampler {
  readonly #options: StepSamplerOptions;
  #seen = 0;
  #samples = 0;
  #since = 0;
  #tokens = 0;
  /** Step after which the current sample began; 0 between samples. */
  #begun = 0;
  #due = false;

  constructor(options: StepSamplerOptions) {
    this.#options = options;
  }

  /** Call after every step, on every rank. Returns the samples that ended with it. */
  async after({ step, tokens, pause }: SampledStep): Promise<readonly RunEvent[]> {
    const { device, world, skip = 0 } = this.#options;
    const seen = ++this.#seen - skip;
    this.#tokens += tokens;
    if (this.#begun > 0) {
      if (seen < this.#begun + SAMPLED_STEPS && !pause) return [];
      return await joinSamples(world, this.#finish(step, seen), () => device.clock());
    }
    if (FIRST_SAMPLES.includes(seen) || (seen > 0 && seen % EVERY === 0)) this.#due = true;
    if (!this.#due || pause) return [];
    device.recordSpans(true);
    [this.#due, this.#begun, this.#since, this.#tokens] = [false, seen, performance.now(), 0];
    return [];
  }

  #finish(step: number, seen: number): OwnSample {
    const { device, held, world } = this.#options;
    const steps = seen - this.#begun;
    this.#begun = 0;
    const { spans } = device.spans();
    device.recordSpans(false);
    const milliseconds = (performance.now() - this.#since) / steps;
    const told = Math.log2(++this.#samples) % 1 === 0; // the first, second, fourth ... sample
    const { costs, times } = summarize(spans, steps);
    const sample: StepsSampled = {
      kind: 'sample',
      step,
      steps,
      rank: world.rank,
      milliseconds,
      ...costs,
      memory: memoryByOwner(held(), device.stats().reservedBytes, process.memoryUsage.rss()),
      ...(told && { spans: firstSpans(spans) }),
    };
    const begin = spans.reduce((first, { start }) => Math.min(first, start), device.clock());
    return { sample, times, tokens: this.#tokens / steps, begin };
  }
}

/** Means per step from the spans of several steps, and the times of all of them. */
export function summarize(
  spans: readonly Span[],
  steps: number,
): { costs: Pick<StepsSampled, 'ops' | 'busy' | 'exposed'>; times: StepTimes } {
  const costs = new Map<string, OpCost>();
  const busy: Record<string, number> = {};
  for (const { stage: number, op, stream, start, end } of spans) {
    const stage = STAGES[number] ?? 'other';
    const key = `${stage} ${op} ${stream}`;
    const cost = costs.get(key) ?? { stage, op, stream, calls: 0, milliseconds: 0 };
    const milliseconds = (end - start) / 1000 / steps;
    cost.calls += 1 / steps;
    cost.milliseconds += milliseconds;
    costs.set(key, cost);
    busy[stream] = (busy[stream] ?? 0) + milliseconds;
  }
  const ops = [...costs.values()].sort((a, b) => b.milliseconds - a.milliseconds);
  const times = timesOf(spans);
  return { costs: { ops, busy, exposed: (times.bare * 1000) / steps }, times };
}

function memoryByOwner(held: HeldBytes, reserved: number, resident: number): Record<string, number> {
  const known = Object.values(held).reduce((sum, bytes) => sum + bytes, 0);
  return {
    ...held,
    'activations and scratch': Math.max(0, reserved - known),
    'JavaScript, data, code': Math.max(0, resident - reserved),
  };
}

function firstSpans(spans: readonly Span[]): NonNullable<StepsSampled['spans']> {
  const ordered = spans.toSorted((a, b) => a.start - b.start).slice(0, MOST_SPANS);
  const origin = ordered[0]?.start ?? 0;
  const tenths = (microseconds: number): number => Math.round(microseconds * 10) / 10;
  return ordered.map(
    ({ stream, op, lane, start, end }) => [stream, op, lane, tenths(start - origin), tenths(end - start)] as const,
  );
}
