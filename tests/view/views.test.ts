import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { RunEvent, StepDone } from '../../src/events/event.js';
import { EventTail } from '../../src/view/event-tail.js';
import { htmlTable } from '../../src/view/html.js';
import { RankFigures } from '../../src/view/rank-figures.js';
import { RunLog } from '../../src/view/run-log.js';
import { StepColumns } from '../../src/view/step-columns.js';
import { lineChart, ticks } from '../../src/view/svg-chart.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-view-'));
afterAll(() => rmSync(folder, { recursive: true }));

const step = (n: number, loss: number, tokensPerSecond = 100): StepDone => {
  return { kind: 'step', step: n, epoch: 0, loss, lr: 1, tokens: 100, tokensPerSecond, mfu: tokensPerSecond / 1000 };
};
const line = (event: RunEvent, time = '2026-01-01T00:00:00.000Z') => `${JSON.stringify({ time, ...event })}\n`;

describe('following a log', () => {
  test('whole lines only, each once; a file written anew is read anew; foreign lines are counted', () => {
    const path = join(folder, 'events.jsonl');
    const tail = new EventTail(path);
    expect(tail.read().events).toEqual([]);
    const second = line(step(2, 1));
    writeFileSync(path, line(step(1, 2)) + second.slice(0, 20));
    expect(tail.read().events.map(event => event.step)).toEqual([1]);
    appendFileSync(path, `${second.slice(20)}{"not":"ours"}\n`);
    expect(tail.read()).toMatchObject({ replaced: false, damaged: 1, events: [{ step: 2 }] });
    expect(tail.read().events).toEqual([]);
    rmSync(path);
    writeFileSync(path, line(step(1, 2)));
    expect(tail.read()).toMatchObject({ replaced: true, events: [{ step: 1 }] });
  });

  test('a resumed run is no longer one that failed, and its pause is no gap of a process', () => {
    const log = new RunLog();
    log.add({ ...step(1, 2), time: '2026-01-01T00:00:00.000Z' });
    log.add({ ...step(2, 2), time: '2026-01-01T00:00:01.000Z' });
    log.add({ kind: 'failed', step: 2, code: 'diverged', message: 'x', time: '2026-01-01T00:00:02.000Z' });
    expect(log.failed).toBeDefined();
    log.add({ kind: 'resumed', step: 1, from: 'x', refused: [], time: '2026-01-01T09:00:00.000Z' });
    expect(log.failed).toBeUndefined();
    expect(log.longestGap).toBe(1000);
  });
});

describe('where the time of ranks went', () => {
  const shares = (computing: number, waiting: number, tokens: number) => {
    return { computing, exposed: 0, waiting, free: 1 - computing - waiting, tokens };
  };

  test('means over samples by their time, and per rank since the number of ranks changed', () => {
    const figures = new RankFigures();
    expect(figures.view()).toBeUndefined();
    figures.add({ kind: 'ranks', step: 4, steps: 4, milliseconds: 10, ranks: [shares(1, 0, 100)] });
    expect(figures.view()!.ranks).toHaveLength(1);
    const both = { kind: 'ranks', steps: 4 } as const;
    figures.add({ ...both, step: 8, milliseconds: 10, ranks: [shares(0.8, 0, 60), shares(0.6, 0.2, 40)] });
    figures.add({ ...both, step: 12, milliseconds: 20, ranks: [shares(0.9, 0, 60), shares(0.8, 0.1, 40)] });
    const { shares: all, ranks } = figures.view()!;
    expect(all.computing).toBeCloseTo((1 * 10 + 0.7 * 10 + 0.85 * 20) / 40);
    expect(ranks.map(({ tokens }) => tokens)).toEqual([60, 40]);
    expect(ranks[1]!.waiting).toBeCloseTo((0.2 * 10 + 0.1 * 20) / 30);
  });
});

describe('columns of steps', () => {
  test('rows read ahead: means of the steps that have a share, nothing where none has', () => {
    const columns = new StepColumns();
    columns.add(step(1, 1));
    expect(columns.rowsAhead()).toEqual({ stale: null, resent: null });
    columns.add({ ...step(2, 1), stale: 0.1 });
    columns.add({ ...step(3, 1), stale: 0.3 });
    expect(columns.rowsAhead().stale).toBeCloseTo(0.2);
    columns.add({ ...step(4, 1), resent: 0.5 });
    expect(columns.rowsAhead().resent).toBe(0.5);
  });

  test('few points keep means, extremes and the last step; rates are weighted by time', () => {
    const columns = new StepColumns();
    for (let n = 1; n <= 1000; n++) columns.add(step(n, n === 500 ? 99 : 1, n % 2 === 0 ? 100 : 300));
    const series = columns.series(10);
    expect(series.step).toEqual([100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
    expect(Math.max(...series.lossHigh)).toBe(99);
    expect(series.loss[4]).toBeCloseTo(1 + 98 / 100);
    expect(series.loss[5]).toBe(1);
    // 100 tokens in 1 s and 100 in a third of one: 150 a second, not the mean of the rates.
    expect(series.tokensPerSecond[0]).toBeCloseTo(150);
    expect(series.mfu[0]).toBeCloseTo(0.15);
    expect(columns.series(5000).step).toHaveLength(1000);
    expect(new StepColumns().series().step).toEqual([]);
  });
});

describe('pieces of a page', () => {
  test('text never becomes markup', () => {
    const table = htmlTable(['<b>'], [['<script>alert(1)</script>', '*"a" & b']]);
    expect(table).not.toContain('<script>');
    expect(table).toContain('class="best">&quot;a&quot; &amp; b<');
  });

  test('ticks are round and inside the range', () => {
    expect(ticks(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks(0.0012, 0.0031)).toEqual([0.0015, 0.002, 0.0025, 0.003]);
    expect(ticks(5, 5)).not.toContain(Number.NaN);
  });

  test('a chart draws every series inside its frame, skips what is not finite, and is empty without any', () => {
    const options = { title: 'a < b', xName: 'step', format: String } as const;
    expect(lineChart({ ...options, series: [{ name: 'none', x: [1], y: [null] }] })).toBe('');
    const chart = lineChart({
      ...options,
      series: [{ name: 'one', x: [1, 2, 3], y: [1, Number.NaN, 3] }],
      lines: [{ name: 'rule', value: 10 }],
    });
    expect(chart).toContain('a &lt; b');
    expect(chart).not.toContain('NaN');
    expect(/<polyline[^>]*points="([^"]*)"/.exec(chart)![1]!.split(' ')).toHaveLength(2);
    const heights = [...chart.matchAll(/ (\d+\.\d)H/g)].map(([, y]) => Number(y));
    expect(Math.min(...heights)).toBeGreaterThan(0);
  });
});
