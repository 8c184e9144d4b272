// The figures of every step as columns, and their reduction to a few hundred points for plots.

import type { StepDone } from '../events/event.js';

/** Maximum points of a plot. */
const MOST_POINTS = 600;

/** Means of consecutive steps; `loss` with its extremes. */
export interface StepSeries {
  step: number[];
  loss: number[];
  lossLow: number[];
  lossHigh: number[];
  lr: number[];
  tokensPerSecond: number[];
  mfu: number[];
  /** Null where a log has none. */
  mfuPaper: (number | null)[];
}

export interface NegativeSeries {
  step: number[];
  effective: number[];
  masked: number[];
  repeated: number[];
}

/** Effect of reading item rows ahead of updates, as shares of the rows read. */
export interface RowsAhead {
  /** Changed by an update not yet seen. */
  stale: number | null;
  /** Sent again after the update. */
  resent: number | null;
}

export class StepColumns {
  readonly step: number[] = [];
  readonly loss: number[] = [];
  readonly lr: number[] = [];
  readonly tokens: number[] = [];
  readonly seconds: number[] = [];
  readonly mfu: number[] = [];
  readonly mfuPaper: number[] = [];
  readonly negatives: NegativeSeries = { step: [], effective: [], masked: [], repeated: [] };
  /** Shares of the item rows read, in steps that read ahead of updates. */
  readonly stale: number[] = [];
  readonly resent: number[] = [];
  /** Of the steps on several ranks. */
  readonly spread: number[] = [];

  get count(): number {
    return this.step.length;
  }

  add({ step, loss, lr, tokens, tokensPerSecond, mfu, mfuPaper, negatives, ...rest }: StepDone): void {
    this.step.push(step);
    this.loss.push(loss);
    this.lr.push(lr);
    this.tokens.push(tokens);
    this.seconds.push(tokensPerSecond > 0 ? tokens / tokensPerSecond : 0);
    this.mfu.push(mfu);
    this.mfuPaper.push(mfuPaper ?? Number.NaN);
    if (rest.stale !== undefined) this.stale.push(rest.stale);
    if (rest.resent !== undefined) this.resent.push(rest.resent);
    if (rest.spread !== undefined) this.spread.push(rest.spread);
    if (!negatives) return;
    this.negatives.step.push(step);
    for (const key of ['effective', 'masked', 'repeated'] as const) this.negatives[key].push(negatives[key]);
  }

  /** Reduces to at most `points`; rates are weighted by time. */
  series(points = MOST_POINTS): StepSeries {
    const series: StepSeries = {
      step: [],
      loss: [],
      lossLow: [],
      lossHigh: [],
      lr: [],
      tokensPerSecond: [],
      mfu: [],
      mfuPaper: [],
    };
    for (const [from, to] of buckets(this.count, points)) {
      const seconds = sum(this.seconds, from, to);
      const timed = (column: number[]): number =>
        seconds === 0 ? 0 : weighted(column, this.seconds, from, to) / seconds;
      const paper = timed(this.mfuPaper);
      series.step.push(this.step[to - 1]!);
      series.loss.push(sum(this.loss, from, to) / (to - from));
      series.lossLow.push(extreme(this.loss, from, to, Math.min));
      series.lossHigh.push(extreme(this.loss, from, to, Math.max));
      series.lr.push(this.lr[to - 1]!);
      series.tokensPerSecond.push(seconds === 0 ? 0 : sum(this.tokens, from, to) / seconds);
      series.mfu.push(timed(this.mfu));
      series.mfuPaper.push(Number.isFinite(paper) ? paper : null);
    }
    return series;
  }

  /** Means over the steps that read ahead; null if none did. */
  rowsAhead(): RowsAhead {
    return { stale: mean(this.stale), resent: mean(this.resent) };
  }

  tokenSpread(): number | null {
    return mean(this.spread);
  }

  negativeSeries(points = MOST_POINTS): NegativeSeries {
    const { step, ...columns } = this.negatives;
    const ranges = buckets(step.length, points);
    const means = (column: number[]): number[] => ranges.map(([from, to]) => sum(column, from, to) / (to - from));
    return {
      step: ranges.map(([, to]) => step[to - 1]!),
      effective: means(columns.effective),
      masked: means(columns.masked),
      repeated: means(columns.repeated),
    };
  }
}

/** Consecutive ranges of nearly equal size. */
function buckets(count: number, points: number): [from: number, to: number][] {
  const most = Math.min(count, points);
  return Array.from({ length: most }, (_, i) => [Math.floor((i * count) / most), Math.floor(((i + 1) * count) / most)]);
}

function sum(column: readonly number[], from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += column[i]!;
  return total;
}

function mean(column: readonly number[]): number | null {
  return column.length === 0 ? null : sum(column, 0, column.length) / column.length;
}

function weighted(column: readonly number[], weights: readonly number[], from: number, to: number): number {
  let total = 0;
  for (let i = from; i < to; i++) total += column[i]! * weights[i]!;
  return total;
}

function extreme(column: readonly number[], from: number, to: number, pick: (a: number, b: number) => number): number {
  let found = column[from]!;
  for (let i = from + 1; i < to; i++) found = pick(found, column[i]!);
  return found;
}
