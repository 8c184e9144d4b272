import { mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.js';
import { Device } from '../../src/native/device.js';
import { readEvents } from '../../src/train/event-log.js';
import { RunFolder } from '../../src/train/run-folder.js';
import { toyConfig, toySource, trainToy } from './toy-run.js';

/** The walk hides nothing, so whatever works finds the next item nearly always. */
const LEARNS: [string, ConfigInput][] = [
  ['HSTU', {}],
  ['HSTU with actions', { model: { actions: true } }],
  ['HSTU without times', { model: { timeBias: 'off' } }],
  ['FuXi-alpha', { model: { kind: 'fuxi' } }],
  ['SASRec', { model: { kind: 'sasrec', attentionDropout: 0.1 } }],
  ['popularity negatives', { loss: { negatives: { kind: 'popularity', count: 16 } } }],
  ['in-batch negatives', { loss: { negatives: { kind: 'in-batch', count: 16 } } }],
  ['full softmax', { loss: { kind: 'full-softmax' } }],
  ['full softmax, smoothed', { loss: { kind: 'full-softmax', smoothing: 0.1 } }],
  ['BCE', { loss: { kind: 'bce' } }],
  ['gBCE', { loss: { kind: 'gbce' } }],
  ['raw dot products', { loss: { normalizeUser: false, normalizeItem: false, temperature: 1 } }],
  ['lazy Adam', { optimizer: { table: 'lazy-adam' } }],
  ['row-wise AdaGrad', { optimizer: { table: 'row-adagrad', tableLr: 0.1 } }],
  [
    'full softmax, row-wise AdaGrad',
    { loss: { kind: 'full-softmax' }, optimizer: { table: 'row-adagrad', tableLr: 0.1 } },
  ],
  ['clipping, schedule, decay', { optimizer: { clip: 1, weightDecay: 0.01, schedule: { kind: 'cosine', warmup: 5 } } }],
  ['lanes', { batch: { tokens: 48, lanes: 3 } }],
  ['an average of the weights', { optimizer: { ema: 0.9 } }],
];

test.each(LEARNS)('learns the walk: %s', async (_, overrides) => {
  const config = toyConfig(overrides, { epochs: 4, evaluation: { exclude: 'none', metric: 'hr@1' } });
  const run = await trainToy({ config, source: toySource(360) });
  expect(run.losses.at(-1)).toBeLessThan(run.losses[0]! / 2);
  expect(Math.max(...run.validations)).toBeGreaterThan(0.8);
});

test('the same seed gives the same bits with 1, 2 and 3 threads; another seed does not', async () => {
  const config = toyConfig();
  const one = await trainToy({ config, threads: 1 });
  for (const threads of [2, 3]) {
    const run = await trainToy({ config, threads });
    expect(run.digest).toBe(one.digest);
    expect(run.losses).toEqual(one.losses);
  }
  expect((await trainToy({ config: toyConfig({ seed: 2 }) })).digest).not.toBe(one.digest);
});

test('AVX2 and AVX-512 give the same bits', async context => {
  const config = toyConfig({ model: { d: 48, heads: 2, blocks: 2 } });
  using device = Device.open();
  context.skip(device.stats().isa !== 'avx512', 'this CPU has no AVX-512');
  const [narrow, wide] = [await trainToy({ config, kernels: 'avx2' }), await trainToy({ config, kernels: 'avx512' })];
  expect(wide.digest).toBe(narrow.digest);
  expect(wide.losses).toEqual(narrow.losses);
  expect((await trainToy({ config, kernels: 'portable' })).digest).not.toBe(narrow.digest);
});

/** Everything that carries state from step to step at once. */
const STATEFUL: ConfigInput = {
  optimizer: { ema: 0.9, clip: 1, table: 'lazy-adam', schedule: { kind: 'linear', warmup: 3 } },
  batch: { tokens: 64, lanes: 2 },
};

test.each([
  ['in the middle of an epoch', 4],
  ['right after the first step', 1],
  ['near the end', 14],
])('interrupted %s and resumed equals uninterrupted, bit for bit', async (_, stopAt) => {
  const config = toyConfig(STATEFUL);
  const whole = await trainToy({ config });
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-resume-'));
  const stop = new AbortController();
  const onEvent = (event: { kind: string; step: number }) => {
    if (event.kind === 'step' && event.step === stopAt) stop.abort();
  };
  const first = await trainToy({ config, folder, onEvent, signal: stop.signal });
  expect(first.reason).toBe('interrupted');
  expect(first.step).toBeLessThan(whole.step);
  const rest = await trainToy({ config, folder });
  expect(rest.digest).toBe(whole.digest);
  expect(rest.early).toEqual(whole.early);
  expect([...first.losses, ...rest.losses]).toEqual(whole.losses);
  const steps = readEvents(join(folder, 'events.jsonl')).filter(event => event.kind === 'step');
  expect(steps.map(event => event.step)).toEqual(whole.losses.map((_loss, i) => i + 1));
  // The fit of the steps' cost goes on too: it has seen every step once.
  const { checkpoint } = RunFolder.open(folder).checkpoints().latest();
  expect(checkpoint?.state).toMatchObject({ cost: { observations: whole.step } });
  rmSync(folder, { recursive: true });
});

test('an epoch tells what tokens and pairs of tokens cost, as fitted to its steps', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-cost-'));
  await trainToy({ config: toyConfig(), folder });
  const epochs = readEvents(join(folder, 'events.jsonl')).filter(event => event.kind === 'epoch');
  for (const { cost } of epochs) expect(cost.a + cost.b).toBeGreaterThan(0);
  expect(new Set(epochs.map(({ cost }) => cost.a)).size).toBe(epochs.length);
  rmSync(folder, { recursive: true });
});

test('a damaged newest checkpoint costs its steps, not the result', async () => {
  const config = toyConfig({ checkpoint: { every: 2, keep: 3 } });
  const whole = await trainToy({ config });
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-damaged-'));
  await trainToy({ config, folder });
  const newest = readdirSync(join(folder, 'checkpoints')).sort().at(-1);
  truncateSync(join(folder, 'checkpoints', newest!, 'optimizer.safetensors'), 100);
  const refused: string[] = [];
  const again = await trainToy({
    config,
    folder,
    onEvent: event => {
      if (event.kind === 'resumed') refused.push(...event.refused.map(({ reason }) => reason));
    },
  });
  expect(refused).toEqual(['optimizer.safetensors does not match its checksum: damaged or truncated']);
  expect(again.losses.length).toBeGreaterThan(0);
  expect(again.digest).toBe(whole.digest);
  rmSync(folder, { recursive: true });
});

test('a run that has ended does not train again', async () => {
  const config = toyConfig();
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-ended-'));
  const first = await trainToy({ config, folder });
  const again = await trainToy({ config, folder });
  expect(again.losses).toEqual([]);
  expect(again.digest).toBe(first.digest);
  rmSync(folder, { recursive: true });
});

test('patience ends a run that no longer improves, and the best step keeps its checkpoint', async () => {
  const config = toyConfig({
    epochs: 50,
    optimizer: { lr: 1e-9 },
    evaluation: { patience: 2 },
    checkpoint: { keep: 1 },
  });
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-patience-'));
  const run = await trainToy({ config, folder });
  expect(run.reason).toBe('patience');
  expect(run.validations.length).toBeLessThan(50);
  const kept = readdirSync(join(folder, 'checkpoints')).map(name => Number(name.slice(5)));
  expect(kept).toContain(run.early.best?.step);
  expect(kept.length).toBe(2);
  rmSync(folder, { recursive: true });
});

test('a run that diverges says at which step, and what to change', async () => {
  const raw: ConfigInput = { loss: { normalizeUser: false, normalizeItem: false, temperature: 1e-42 } };
  const run = trainToy({ config: toyConfig(raw) });
  await expect(run).rejects.toThrow(/diverged at step \d+/);
});

test('maxSteps ends a run in the middle of an epoch', async () => {
  const run = await trainToy({ config: toyConfig({ maxSteps: 5 }) });
  expect(run).toMatchObject({ reason: 'steps', step: 5 });
});

test('lanes are the batch that they add up to', async () => {
  // Without dropout and sampling the only difference left is the order of sums.
  const exact: ConfigInput = { model: { dropout: 0 }, loss: { kind: 'full-softmax' }, maxSteps: 6 };
  const together = await trainToy({ config: toyConfig(exact, { batch: { users: 60 } }) });
  const apart = await trainToy({ config: toyConfig(exact, { batch: { users: 20, lanes: 3 } }) });
  apart.losses.forEach((loss, i) => expect(loss).toBeCloseTo(together.losses[i]!, 3));
});

test('lazy Adam under full softmax is dense Adam: every row is touched', async () => {
  const full: ConfigInput = {
    loss: { kind: 'full-softmax' },
    optimizer: { clip: 1 },
    batch: { tokens: 64, lanes: 3 },
  };
  const dense = await trainToy({ config: toyConfig(full) });
  const lazy = await trainToy({ config: toyConfig(full, { optimizer: { table: 'lazy-adam' } }) });
  expect(lazy.losses.length).toBe(dense.losses.length);
  lazy.losses.forEach((loss, i) => expect(loss).toBeCloseTo(dense.losses[i]!, 4));
});
