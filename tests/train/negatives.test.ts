// Sampling and sharing of negatives: every configuration learns, gives the same bits however it is computed, and reports the
// effective number of negatives.
import { describe, expect, test } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.js';
import type { StepDone } from '../../src/events/event.js';
import { splitCount } from '../../src/negatives/mixture.js';
import { toyConfig, toySource, trainToy } from './toy-run.js';

const of = (negatives: NonNullable<NonNullable<ConfigInput['loss']>['negatives']>, loss: ConfigInput['loss'] = {}) => ({
  loss: { ...loss, negatives },
});

const WAYS: [string, ConfigInput][] = [
  ['sharing by 2', of({ count: 8, sharing: { factor: 2 } })],
  ['sharing by 4, gBCE', of({ count: 4, sharing: { factor: 4 } }, { kind: 'gbce' })],
  ['shared scalars', of({ count: 8, sharing: { factor: 2, of: 'scalars' } })],
  ['all of a pool', of({ count: 16, pool: 16 })],
  ['all of a pool by popularity, BCE', of({ count: 24, pool: 24, kind: 'popularity' }, { kind: 'bce' })],
  ['some of a pool, shared', of({ count: 6, pool: 20, sharing: { factor: 3 } })],
  ['mixed', of({ count: 16, kind: 'mixed' })],
  ['history masked', of({ count: 16, mask: 'history' })],
  ['history masked in a pool', of({ count: 30, pool: 30, mask: 'history' })],
  ['FP16', of({ count: 16, storage: 'f16' })],
  // Two segments hold fewer rows than there are items: otherwise they would be fetched at once.
  ['FP16 in segments, gBCE', of({ count: 16, storage: 'f16', segment: 1 }, { kind: 'gbce' })],
  ['FP16, shared, in segments', of({ count: 8, sharing: { factor: 2 }, storage: 'f16', segment: 1 })],
  ['FP16 of a pool', of({ count: 16, pool: 16, storage: 'f16' })],
];

describe.each(WAYS)('%s', (_, overrides) => {
  test('learns the walk', async () => {
    // Items of the own history are no negatives once they are masked, so they are left out of the ranking then.
    const exclude = overrides.loss?.negatives?.mask === 'history' ? 'input' : 'none';
    const config = toyConfig(overrides, { epochs: 4, evaluation: { exclude, metric: 'hr@1' } });
    const run = await trainToy({ config, source: toySource(360) });
    expect(run.losses.at(-1)).toBeLessThan(run.losses[0]! / 2);
    expect(Math.max(...run.validations)).toBeGreaterThan(0.8);
  });

  test('gives the same bits with 1 and 3 threads, and from staged rows, in one lane and in three', async () => {
    for (const lanes of [1, 3]) {
      const config = toyConfig(overrides, { batch: { tokens: 48, lanes }, maxSteps: 6 });
      const one = await trainToy({ config, threads: 1 });
      expect((await trainToy({ config, threads: 3 })).digest).toBe(one.digest);
      expect((await trainToy({ config, staged: true })).digest).toBe(one.digest);
    }
  });
});

test('neither segments nor overlap change what FP16 negatives give, and they stay near f32', async () => {
  const run = (negatives: NonNullable<NonNullable<ConfigInput['loss']>['negatives']>, more: ConfigInput = {}) =>
    trainToy({ config: toyConfig(of({ count: 16, ...negatives }), { batch: { tokens: 48, lanes: 2 } }, more) });
  const half = await run({ storage: 'f16' });
  for (const more of [{}, { overlap: 'off' }] as const) {
    const segments = await run({ storage: 'f16', segment: 1 }, more);
    expect(segments.digest).toBe(half.digest);
    expect(segments.losses).toEqual(half.losses);
  }
  const plain = await run({});
  expect(plain.digest).not.toBe(half.digest);
  plain.losses.forEach((loss, i) => expect(Math.abs(half.losses[i]! - loss)).toBeLessThan(0.02 * loss));
});

test('a step says how many negatives its tokens really have', async () => {
  const counted = async (overrides: ConfigInput) => {
    const steps: NonNullable<StepDone['negatives']>[] = [];
    const config = toyConfig(overrides, { maxSteps: 1 });
    await trainToy({ config, onEvent: event => event.kind === 'step' && steps.push(event.negatives!) });
    return steps[0]!;
  };
  const plain = await counted(of({ count: 16 }));
  // 16 uniform draws of 40 items: 16 / 40 are the positive, and 40 (1 - (39/40)^16) = 13.3 different ones are left.
  expect(plain.masked).toBeGreaterThan(0.2);
  expect(plain.masked).toBeLessThan(0.7);
  expect(plain.effective + plain.masked + plain.repeated).toBeCloseTo(16, 9);
  expect(plain.effective).toBeGreaterThan(12);
  expect(plain.effective).toBeLessThan(13.6);
  const shared = await counted(of({ count: 16, sharing: { factor: 2 } }));
  expect(shared.effective + shared.masked + shared.repeated).toBeCloseTo(32, 9);
  expect(shared.effective).toBeGreaterThan(plain.effective + 4);
  const history = await counted(of({ count: 16, mask: 'history' }));
  expect(history.masked).toBeGreaterThan(plain.masked + 1);
  // Rows of a pool differ; the positive is one of 16 of 40 in two cases of five.
  const pool = await counted(of({ count: 16, pool: 16 }));
  expect(pool.repeated).toBe(0);
  expect(pool.effective + pool.masked).toBeCloseTo(16, 9);
  expect(pool.masked).toBeGreaterThan(0.2);
  expect(pool.masked).toBeLessThan(0.7);
});

test('a mixed draw splits R by the shares', () => {
  expect(splitCount(128, { uniform: 0.5, popularity: 0.25, inBatch: 0.25 })).toEqual([64, 32, 32]);
  expect(splitCount(3, { uniform: 1, popularity: 1, inBatch: 1 })).toEqual([1, 1, 1]);
  expect(splitCount(5, { uniform: 0, popularity: 0, inBatch: 0.1 })).toEqual([0, 0, 5]);
});

test('settings that contradict one another are refused', () => {
  const refused = (overrides: ConfigInput) => () => toyConfig(overrides);
  expect(refused(of({ kind: 'mixed', pool: 9 }))).toThrow('pool = 9');
  expect(refused(of({ count: 9, pool: 9, sharing: { factor: 2 } }))).toThrow('sharing.factor = 2');
  expect(refused(of({ kind: 'mixed', shares: { uniform: 0, popularity: 0, inBatch: 0 } }))).toThrow('all 0');
});
