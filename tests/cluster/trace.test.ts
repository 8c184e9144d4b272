// One trace of all ranks by one clock, and where their time went.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { readEvents } from '../../src/train/event-log.js';
import { launch, MPIS } from './mpi.js';

interface TraceEvent {
  name: string;
  cat: string;
  ph: 'M' | 'X';
  pid: number;
  tid: number;
  ts: number;
  dur: number;
  args: { name?: string };
}

const folder = mkdtempSync(join(tmpdir(), 'turbogr-trace-'));
const [store, path, file] = [join(folder, 'store'), join(folder, 'run'), join(folder, 'trace.json')];
const SETTINGS = ['model.d=16', 'model.blocks=1', 'batch.tokens=256', 'batch.lanes=4', 'maxSteps=64', 'threads=1'];

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.skipIf(MPIS.length === 0)('two ranks: one trace file, shares of the time of both in log and report', async () => {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 300, videos: 150, meanLength: 40, margin: false });
  await prepare({ files: [log], out: store });
  const settings = SETTINGS.flatMap(setting => ['--set', setting]);
  const { code, stdout } = await launch(MPIS[0]!, 2, 'train', store, '--run', path, '--trace', file, ...settings);
  expect(code).toBe(0);
  expect(stdout).toMatch(/steps: \d+\.\d % computing, \d+\.\d % exposed communication/);

  const { traceEvents }: { traceEvents: TraceEvent[] } = JSON.parse(readFileSync(file, 'utf8'));
  const named = (name: string) => traceEvents.filter(event => event.ph === 'M' && event.name === name);
  const ranks = named('process_name').map(({ args }) => args.name!);
  expect(ranks.map(name => name.split(',')[0])).toEqual(['rank 0', 'rank 1']);
  const streams = ['compute', 'sparse', 'comm'];
  expect(named('thread_name').map(({ args }) => args.name)).toEqual([...streams, ...streams]);
  const spans = traceEvents.filter(event => event.ph === 'X');
  expect(new Set(spans.map(({ pid, tid }) => `${pid} ${tid}`)).size).toBe(6);
  // The n-th exchange is the same on both ranks: where both send something, nobody ends it before the other has begun it.
  const exchanges = [0, 1].map(pid =>
    spans.filter(span => span.pid === pid && span.name === 'comm_all_gather_v' && span.cat === 'reduce'),
  );
  const error = Number(/clock to (\d+) us/.exec(ranks[1]!)![1]);
  expect(error).toBeLessThan(50_000);
  const pairs = exchanges[0]!.slice(0, exchanges[1]!.length).map((span, i) => [span, exchanges[1]![i]!] as const);
  expect(pairs.length).toBeGreaterThan(30);
  const together = pairs.filter(([a, b]) => a.ts <= b.ts + b.dur + error + 1 && b.ts <= a.ts + a.dur + error + 1);
  expect(together.length).toBeGreaterThan(0.9 * pairs.length); // a rank without work sends nothing

  const events = readEvents(join(path, 'events.jsonl'));
  const sampled = events.filter(event => event.kind === 'ranks');
  expect(sampled.length).toBeGreaterThan(0);
  for (const { ranks: each } of sampled) {
    expect(each).toHaveLength(2);
    for (const { computing, exposed, waiting, free, tokens } of each) {
      expect(computing + exposed + waiting + free).toBeCloseTo(1);
      expect(Math.min(computing, exposed, waiting, free)).toBeGreaterThanOrEqual(0);
      expect(tokens).toBeGreaterThan(0);
    }
  }
  const looks = events.filter(event => event.kind === 'sample');
  expect(looks.map(({ rank }) => rank).slice(0, 2)).toEqual([0, 1]);
  const steps = events.filter(event => event.kind === 'step');
  expect(steps.every(({ spread }) => spread !== undefined && spread >= 0 && spread <= 1)).toBe(true);
  expect(readFileSync(join(path, 'report.md'), 'utf8')).toContain('## Steps by rank');
  expect(readFileSync(join(path, 'report.html'), 'utf8')).toContain('Steps by rank');
});
