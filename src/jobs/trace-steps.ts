// The first steps of a run as a Chrome trace: what each stream did when, by stage and lane.

import { chromeTrace, type Span } from '../events/chrome-trace.js';
import type { RunEvent } from '../events/event.js';
import type { Device } from '../native/device.js';
import { STAGES } from '../train/stages.js';
import { writeFileAtomic } from '../util/atomic-file.js';

/** Enough to see the rhythm; a viewer has trouble with much more. */
export const TRACED_STEPS = 50;

export class StepTrace {
  readonly #device: Device;
  readonly #file: string;
  readonly #spans: Span[] = [];
  #steps = 0;

  constructor(device: Device, file: string) {
    this.#device = device;
    this.#file = file;
    device.recordSpans(true);
  }

  /** Collects what was recorded since the last step. */
  see(event: RunEvent): void {
    if (event.kind !== 'step' || this.#steps >= TRACED_STEPS) return;
    this.#spans.push(...this.#device.spans().spans);
    if (++this.#steps === TRACED_STEPS) this.#device.recordSpans(false);
  }

  write(): void {
    writeFileAtomic(this.#file, chromeTrace(this.#spans, { stages: STAGES }));
  }
}
