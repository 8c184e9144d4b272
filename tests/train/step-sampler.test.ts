import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Span } from '../../src/events/chrome-trace.js';
import { readEvents } from '../../src/train/event-log.js';
import { summarize } from '../../src/train/step-sampler.js';
import { SMALL_CONFIG, smallRun } from '../support/small-run.js';

const span = (stream: string, op: string, start: number, end: number): Span => {
  return { stream, op, lane: 0, stage: 3, start, end };
};

test('costs are means of a step, and communication counts as exposed only while nothing computes', () => {
  const spans = [
    span('compute', 'norm_linear_forward', 0, 4000),
    span('comm', 'comm_all_gather_v', 3000, 6000), // 2 ms alone
    span('sparse', 'embedding_gather', 7000, 9000),
    span('comm', 'comm_all_gather_v', 6500, 7500), // 0.5 ms alone
    span('compute', 'norm_linear_forward', 9000, 11_000),
  ];
  const { ops, busy, exposed } = summarize(spans, 2).costs;
  expect(exposed).toBeCloseTo(1.25);
  expect(busy).toEqual({ compute: 3, comm: 2, sparse: 1 });
  expect(ops[0]).toEqual({
    stage: 'dense',
    op: 'norm_linear_forward',
    stream: 'compute',
    calls: 1,
    milliseconds: 3,
  });
});

test('a run logs baselines on validation, op costs, memory by owner, machine and MFU in both countings', async () => {
  using small = await smallRun({ ...SMALL_CONFIG, epochs: 4 });
  const events = readEvents(join(small.run, 'events.jsonl'));
  const of = <K extends (typeof events)[number]['kind']>(kind: K) =>
    events.filter((event): event is Extract<(typeof events)[number], { kind: K }> => event.kind === kind);

  const [run] = of('run');
  expect(run!.machine).toMatchObject({ node: process.versions.node });
  expect(run!.totalSteps).toBe(of('step').length);

  const [baselines] = of('baselines');
  expect(Object.keys(baselines!.values)).toEqual(['popularity', 'first-order Markov', 'recency']);
  expect(baselines!.metric).toBe(of('validation')[0]!.metric);

  // The paper does not halve attention, so its count is larger than useful work.
  for (const step of of('step')) expect(step.mfuPaper).toBeGreaterThan(step.mfu);

  const [sample] = of('sample');
  expect(sample!.ops.map(cost => cost.op)).toContain('hstu_attention_backward');
  expect(sample!.busy['compute']).toBeGreaterThan(0);
  expect(sample!.memory['tables']).toBe(4 * run!.model.tableParameters);
  expect(sample!.memory['dense weights']).toBe(4 * run!.model.denseParameters);
  expect(sample!.spans!.length).toBeGreaterThan(10);
  // A log is no trace: its samples must stay a small part of it.
  expect(readFileSync(join(small.run, 'events.jsonl')).length).toBeLessThan(200_000);
});
