// The scaling experiment: the fit recovers a known law, an interrupted grid resumes to the same figures, and the plot has every
// cell.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { plotScaling } from '../../src/bench/scaling-plot.js';
import { runScaling, type ScalingOptions } from '../../src/bench/scaling-experiment.js';
import { fitScalingLaw, lawAt } from '../../src/bench/scaling-law.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-scaling-'));
afterAll(() => rmSync(folder, { recursive: true }));

const LAW = { A: 13, B: 17, a: 0.09, b: 0.12, s: 9, error: 0 };
const GRID = [1e4, 3e4, 1e5, 3e5].flatMap(parameters => [1e4, 1e5, 1e6].map(events => ({ parameters, events })));

test('the law is found again in losses made from it', () => {
  const points = GRID.map(point => ({ ...point, loss: lawAt(LAW, point.parameters, point.events) }));
  const found = fitScalingLaw(points);
  expect(found.error).toBeLessThan(1e-3);
  for (const name of ['A', 'B', 'a', 'b', 's'] as const) expect(found[name] / LAW[name]).toBeCloseTo(1, 1);
});

test('losses that do not depend on the model are a law of the data alone', () => {
  const found = fitScalingLaw(GRID.map(point => ({ ...point, loss: 20 / point.events ** 0.2 })));
  expect(found.error).toBeLessThan(1e-3);
  expect(found.b).toBeCloseTo(0.2, 2);
  expect(lawAt(found, 1, 1e5)).toBeCloseTo(lawAt(found, 1e9, 1e5), 2);
});

const OPTIONS: Omit<ScalingOptions, 'folder'> = {
  widths: [4, 8],
  users: [30, 60],
  visits: 120,
  videos: 60,
  meanLength: 12,
  seed: 1,
  seeds: 2,
  threads: 1,
};

test('an interrupted grid resumes to the same figures, and finished cells are kept', async () => {
  const whole = await runScaling({ ...OPTIONS, folder: join(folder, 'whole') });
  const cells = whole!.cells.map(({ width, users }) => `${width} ${users}`);
  expect(cells).toEqual(['4 30', '8 30', '4 60', '8 60']);
  const [small, large] = [whole!.cells[0]!, whole!.cells[3]!];
  expect(large.parameters).toBeGreaterThan(small.parameters);
  expect(large.events).toBeGreaterThan(small.events);

  const parts = join(folder, 'parts');
  const stop = new AbortController();
  let steps = 0;
  const onEvent = ({ kind }: { kind: string }) => {
    if (kind === 'step' && ++steps === 6) stop.abort();
  };
  expect(await runScaling({ ...OPTIONS, folder: parts, onEvent, signal: stop.signal })).toBeUndefined();
  const first = join(parts, readdirSync(parts).find(name => name === 'width-4-users-30-seed-1')!, 'report.json');
  const written = statSync(first).mtimeMs;
  const rest = await runScaling({ ...OPTIONS, folder: parts });
  expect(statSync(first).mtimeMs).toBe(written);
  const figures = (report: typeof whole) =>
    report!.cells.map(({ loss, runs }) => ({ loss, runs: runs.map(run => ({ ...run, seconds: 0 })) }));
  expect(figures(rest)).toEqual(figures(whole));
  for (const { loss, runs } of whole!.cells) {
    expect(runs.map(({ seed }) => seed)).toEqual([1, 2]);
    expect(runs[0]!.digest).not.toBe(runs[1]!.digest);
    expect(loss).toBeCloseTo((runs[0]!.loss + runs[1]!.loss) / 2, 12);
  }
  const larger = runScaling({ ...OPTIONS, folder: parts, users: [30, 60, 600] });
  await expect(larger).rejects.toThrow('fewer than 600');
});

test('the picture has two panels with a dot for every cell', () => {
  const points = GRID.map(point => ({ ...point, loss: lawAt(LAW, point.parameters, point.events) }));
  const svg = plotScaling(points, LAW);
  const legends = 4 + 3;
  expect(svg.match(/<circle/g)).toHaveLength(2 * points.length + legends);
  expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  expect(svg).toContain('a = 0.090');
});
