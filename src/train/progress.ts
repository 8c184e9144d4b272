// Terminal progress of a run: one updating line while it trains, one permanent line per epoch. Built from events alone, so
// it also works for a run that is resumed or replayed.

import type { RunEvent } from '../events/event.js';
import { coloured, formatCount, formatSeconds, formatShare, ProgressLine } from '../util/terminal.js';

export interface ProgressOptions {
  epochs: number;
  /** Optimiser steps of the whole run, for the remaining time. */
  totalSteps: number;
  /** Prints permanent lines. */
  print: (line: string) => void;
}

export class ProgressView {
  readonly #options: ProgressOptions;
  readonly #line = new ProgressLine();
  readonly #started = performance.now();
  #firstStep: number | undefined;
  #validation = '';
  #epochLine = '';

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  show(event: RunEvent): void {
    if (event.kind === 'step') {
      this.#firstStep ??= event.step - 1;
      const rate = `${formatCount(event.tokensPerSecond)} tokens/s  MFU ${formatShare(event.mfu, 0)}`;
      const place = `epoch ${event.epoch + 1}/${this.#options.epochs}  step ${event.step}/${this.#options.totalSteps}`;
      this.#line.update(
        `${place}  loss ${event.loss.toFixed(4)}  ${rate}  ${this.#timeLeft(event.step)}${this.#validation}`,
      );
    } else if (event.kind === 'epoch') {
      const rate = `${formatCount(event.tokens / event.seconds)} tokens/s  MFU ${formatShare(event.mfu, 0)}`;
      const place = `epoch ${String(event.epoch + 1).padStart(String(this.#options.epochs).length)}`;
      this.#flushEpoch();
      this.#epochLine = `${place}  loss ${event.loss.toFixed(4)}  ${rate}  ${this.#timeLeft(event.step)}`;
    } else if (event.kind === 'validation') {
      const mark = event.best ? coloured(' *', 'green') : '';
      this.#validation = `  ${event.metric} ${event.value.toFixed(4)}${mark}`;
      this.#epochLine += this.#validation;
      this.#flushEpoch();
    } else if (event.kind === 'resumed') {
      for (const { path, reason } of event.refused) this.#options.print(`passed over ${path}: ${reason}`);
      this.#options.print(`resumed at step ${event.step} from ${event.from}`);
    } else if (event.kind === 'finished') {
      this.#flushEpoch();
      this.#line.clear();
    }
  }

  #flushEpoch(): void {
    if (this.#epochLine === '') return;
    this.#line.clear();
    this.#options.print(this.#epochLine);
    this.#epochLine = '';
  }

  #timeLeft(step: number): string {
    const done = step - (this.#firstStep ?? step);
    const left = this.#options.totalSteps - step;
    if (done === 0 || left <= 0) return '';
    const seconds = (performance.now() - this.#started) / 1000;
    return `${formatSeconds((seconds / done) * left)} left`;
  }
}
