// What a sampler promises: random numbers that nothing else uses, no negatives from the own sequence, and the log of the
// probability by which items are drawn.
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ConfigInput } from '../../src/config/schema.js';
import { Call } from '../../src/native/call.js';
import { Device } from '../../src/native/device.js';
import { NegativeSampler, type NegativeSettings } from '../../src/negatives/negative-sampler.js';
import { toyConfig, trainToy } from '../train/toy-run.js';

const DRAWING = new Set(['draw_negatives', 'draw_pool', 'share_negatives']);
const SETTINGS: NegativeSettings = {
  kind: 'uniform',
  count: 12,
  power: 0.75,
  shares: { uniform: 0.5, popularity: 0.25, inBatch: 0.25 },
  pool: 0,
  mask: 'positive',
  sharing: { factor: 1, of: 'outputs' },
};

afterEach(() => vi.restoreAllMocks());

/** Records the random key of every call; weights are filled before the first step and are left out. */
function recordKeys(): () => { op: string; key: string }[] {
  const ops = vi.spyOn(Device.prototype, 'call').mock;
  const randoms = vi.spyOn(Call.prototype, 'random').mock;
  return () =>
    randoms.calls.flatMap(([{ seed, step, purpose }], i) => {
      const started = ops.invocationCallOrder.findLastIndex(order => order < randoms.invocationCallOrder[i]!);
      const [op] = ops.calls[started]!;
      return op.startsWith('fill') ? [] : [{ op, key: `${seed} ${step} ${purpose}` }];
    });
}

describe.each<[string, NonNullable<NonNullable<ConfigInput['loss']>['negatives']>, number]>([
  ['mixed, shared', { count: 8, kind: 'mixed', sharing: { factor: 2 } }, 4],
  ['some of a pool, shared', { count: 8, pool: 16, sharing: { factor: 2 } }, 3],
])('%s', (_, negatives, draws) => {
  test('every draw of every lane and step has random numbers of its own', async () => {
    const [steps, lanes] = [3, 2];
    const recorded = recordKeys();
    await trainToy({ config: toyConfig({ loss: { negatives }, batch: { tokens: 48, lanes }, maxSteps: steps }) });
    const keys = recorded();
    const drawn = keys.filter(({ op }) => DRAWING.has(op)).map(({ key }) => key);
    const others = new Set(keys.filter(({ op }) => !DRAWING.has(op)).map(({ key }) => key));
    expect(drawn).toHaveLength(draws * lanes * steps);
    expect(new Set(drawn).size).toBe(drawn.length);
    expect(others.size).toBeGreaterThan(0); // dropout's
    expect(drawn.filter(key => others.has(key))).toEqual([]);
  });
});

test('a token draws nothing of its own sequence where history is masked', async () => {
  using device = Device.open({ threads: 1 });
  const [items, targets] = [Int32Array.of(0, 1, 2, 5, 6), Int32Array.of(1, 2, 3, 6, -1)];
  const events = {
    items: device.from(items),
    targets: device.from(targets),
    offsets: device.from(Int32Array.of(0, 3, 5)),
  };
  const met = [
    [0, 1, 2, 3],
    [0, 1, 2, 3],
    [0, 1, 2, 3],
    [5, 6],
    [5, 6],
  ];
  const drawn = async (mask: 'positive' | 'history'): Promise<number[][]> => {
    const sampler = new NegativeSampler(device, { ...SETTINGS, mask, count: 40 }, new Int32Array(8).fill(1));
    const ids = await device.read(sampler.draw(events, { seed: 1, step: 1, purpose: 0 }).ids);
    return met.map((_, t) => [...ids.subarray(t * 40, t * 40 + 40)]);
  };
  const [plain, masked] = [await drawn('positive'), await drawn('history')];
  masked.forEach((ids, t) => {
    expect(plain[t]!.some(id => met[t]!.includes(id))).toBe(true);
    expect(ids).toEqual(plain[t]!.map(id => (met[t]!.includes(id) ? -1 : id)));
  });
});

test('a mixed draw is corrected by the probability of the mixture', async () => {
  using device = Device.open({ threads: 1 });
  const sampler = new NegativeSampler(device, { ...SETTINGS, kind: 'mixed', power: 0.5 }, Int32Array.of(0, 1, 4, 9));
  // Counts of at least 1: 15 events, square roots 1 + 1 + 2 + 3 = 7.
  const chances = [1, 1, 4, 9].map(n => 0.5 / 4 + (0.25 * Math.sqrt(n)) / 7 + (0.25 * n) / 15);
  const logq = await device.read(sampler.logq!);
  chances.forEach((chance, item) => expect(logq[item]).toBeCloseTo(Math.log(chance), 6));
});
