// Windows, plans, buffers and the stream: coverage, budgets, and that resuming changes nothing.
import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { BatchPlan, type BatchSize } from '../../src/data/batch/batch-plan.js';
import { BatchStream } from '../../src/data/batch/batch-stream.js';
import { BatchBuffer, type SourceBatch } from '../../src/data/batch/batch-buffer.js';
import { trainingWindows, windowTokens } from '../../src/data/batch/windows.js';
import { MemorySource } from '../../src/data/memory-source.js';
import { numberedSource, ragged } from '../support/numbered-source.js';

const policies = fc.constantFrom('latest' as const, 'sliding' as const);
const sizes = fc.oneof(
  fc.record({ tokens: fc.integer({ min: 12, max: 60 }) }),
  fc.record({ users: fc.integer({ min: 1, max: 9 }) }),
);
const cases = fc.record({
  lengths: ragged,
  policy: policies,
  size: sizes,
  maxLength: fc.integer({ min: 1, max: 12 }),
  seed: fc.nat(),
});
interface Case {
  lengths: number[];
  policy: 'latest' | 'sliding';
  size: BatchSize;
  maxLength: number;
  seed: number;
}

function planOf({ lengths, policy, size, maxLength, seed }: Case) {
  const source = numberedSource(lengths);
  const windows = trainingWindows(source, maxLength, policy);
  return { source, windows, plan: new BatchPlan({ windows, size, seed }) };
}

const copyOf = (batch: SourceBatch) => structuredClone(batch);

/** What every epoch must train on, as targets: all training events but each user's first, or only the newest. */
function expectedTargets({ lengths, policy, maxLength }: Case): number[] {
  const targets: number[] = [];
  let start = 0;
  for (const length of lengths) {
    const trainEnd = Math.max(length - 2, Math.min(length, 1));
    const first = policy === 'sliding' ? 1 : Math.max(1, trainEnd - maxLength);
    for (let e = first; e < trainEnd; e++) targets.push(start + e);
    start += length;
  }
  return targets;
}

describe('an epoch', () => {
  test('has every promised target exactly once, in batches that keep their size', () => {
    fc.assert(
      fc.property(cases, example => {
        const { source, windows, plan } = planOf(example);
        const buffer = new BatchBuffer(source, windows);
        for (const epoch of [0, 3]) {
          const seen: number[] = [];
          for (let position = 0; position < plan.batches(epoch); position++) {
            const batch = buffer.fill(plan.batch({ epoch, position }));
            seen.push(...batch.target);
            const { size } = example;
            const [held, limit] =
              'tokens' in size ? [batch.item.length, size.tokens] : [batch.users.length, size.users];
            expect(held).toBeLessThanOrEqual(limit);
          }
          expect(seen.toSorted((x, y) => x - y)).toEqual(expectedTargets(example));
          expect(seen.length).toBe(plan.tokens);
        }
      }),
    );
  });

  test('leaves no batch that the next sequence would still have fitted', () => {
    fc.assert(
      fc.property(cases, example => {
        if (!('tokens' in example.size)) return;
        const { windows, plan } = planOf(example);
        const sum = (ids: Int32Array) => ids.reduce((total, w) => total + windowTokens(windows, w), 0);
        for (let position = 0; position + 1 < plan.batches(0); position++) {
          const following = plan.batch({ epoch: 0, position: position + 1 });
          const held = sum(plan.batch({ epoch: 0, position }));
          expect(held + windowTokens(windows, following[0]!)).toBeGreaterThan(example.size.tokens);
        }
      }),
    );
  });

  test('is ordered by seed and epoch alone', () => {
    const windows = trainingWindows(numberedSource(Array(50).fill(9)), 4, 'sliding');
    const order = (seed: number, epoch: number) => [
      ...new BatchPlan({ windows, size: { users: 1000 }, seed }).batch({ epoch, position: 0 }),
    ];
    expect(order(1, 2)).toEqual(order(1, 2));
    expect(order(1, 2)).not.toEqual(order(1, 3));
    expect(order(1, 2)).not.toEqual(order(2, 2));
  });
});

describe('a batch', () => {
  test('is jagged: shifted targets, next times, whole windows in order', () => {
    fc.assert(
      fc.property(cases, example => {
        const { source, windows, plan } = planOf(example);
        const buffer = new BatchBuffer(source, windows);
        for (let position = 0; position < plan.batches(0); position++) {
          const ids = plan.batch({ epoch: 0, position });
          const batch = buffer.fill(ids);
          expect([...batch.offsets]).toEqual(
            [...ids].reduce((offsets, w) => [...offsets, offsets.at(-1)! + windowTokens(windows, w)], [0]),
          );
          expect([...batch.users]).toEqual([...ids].map(w => windows.user[w]));
          expect([...batch.ends]).toEqual([...ids].map(w => windows.to[w]! - 1));
          for (let b = 0; b < ids.length; b++) {
            const start = batch.offsets[b]!;
            for (let t = start; t < batch.offsets[b + 1]!; t++) {
              expect(batch.item[t]).toBe(batch.item[start]! + t - start);
              expect(batch.target[t]).toBe(batch.item[t]! + 1);
              expect(batch.time![t]).toBe(10n * BigInt(batch.item[t]!));
              expect(batch.nextTime![t]).toBe(10n * BigInt(batch.target[t]!));
              expect(batch.action![t]).toBe(-batch.item[t]! | 0);
            }
          }
        }
      }),
    );
  });

  test('has no times and no actions when the source has none', () => {
    const offsets = Int32Array.of(0, 5);
    const source = new MemorySource({ items: 5, offsets, item: Int32Array.of(0, 1, 2, 3, 4) });
    const windows = trainingWindows(source, 4, 'latest');
    const batch = new BatchBuffer(source, windows).fill(Int32Array.of(0));
    expect(batch).toEqual({
      offsets: Int32Array.of(0, 2),
      item: Int32Array.of(0, 1),
      target: Int32Array.of(1, 2),
      users: Int32Array.of(0),
      ends: Int32Array.of(2),
    });
  });

  test('reuses its memory once it has grown', () => {
    const source = numberedSource([30, 20, 10]);
    const buffer = new BatchBuffer(source, trainingWindows(source, 40, 'latest'));
    const first = buffer.fill(Int32Array.of(0, 1));
    const second = buffer.fill(Int32Array.of(2));
    expect(second.item.buffer).toBe(first.item.buffer);
    expect(second.offsets.buffer).toBe(first.offsets.buffer);
  });
});

const START = { epoch: 0, position: 0 };

describe('a stream', () => {
  test('resumed from its cursor equals the uninterrupted one, whatever was prefetched', async () => {
    await fc.assert(
      fc.asyncProperty(
        cases,
        fc.nat({ max: 12 }),
        fc.nat({ max: 3 }),
        fc.boolean(),
        async (example, stop, prefetch, idle) => {
          const { source, windows, plan } = planOf(example);
          if (windows.count === 0) return;
          const whole = new BatchStream({ source, order: plan, from: START, prefetch: 0 });
          const expected = Array.from({ length: stop + 5 }, () => copyOf(whole.next()));

          const before = new BatchStream({ source, order: plan, from: START, prefetch });
          for (let i = 0; i < stop; i++) {
            expect(copyOf(before.next())).toEqual(expected[i]);
            if (idle) await new Promise(resolve => setImmediate(resolve));
          }
          before.close();
          const cursor = JSON.parse(JSON.stringify(before.place));
          expect(cursor).toEqual(plan.cursorAt(stop));

          const fresh = planOf(example);
          const after = new BatchStream({ source: fresh.source, order: fresh.plan, from: cursor, prefetch });
          for (let i = stop; i < stop + 5; i++) expect(copyOf(after.next())).toEqual(expected[i]);
          after.close();
        },
      ),
      { numRuns: 60 },
    );
  });

  test('reads ahead no further than asked and keeps a held batch intact', async () => {
    const source = numberedSource(Array(40).fill(6));
    const windows = trainingWindows(source, 8, 'latest');
    const plan = new BatchPlan({ windows, size: { users: 2 }, seed: 1 });
    const read = vi.spyOn(source, 'read');
    const stream = new BatchStream({ source, order: plan, from: START, prefetch: 3 });
    const first = stream.next();
    const kept = copyOf(first);
    for (let i = 0; i < 10; i++) await new Promise(resolve => setImmediate(resolve));
    expect(read.mock.calls.length).toBe(2 * (1 + 3)); // two windows in each of four batches
    expect(first).toEqual(kept);
    expect(stream.place).toEqual({ epoch: 0, position: 1 });
    stream.close();
  });

  test('reports a read error to the one who takes the batch', async () => {
    const source = numberedSource([9, 9, 9]);
    const plan = new BatchPlan({ windows: trainingWindows(source, 8, 'latest'), size: { users: 1 }, seed: 1 });
    const stream = new BatchStream({ source, order: plan, from: START });
    stream.next();
    vi.spyOn(source, 'read').mockImplementation(() => {
      throw new Error('disk gone');
    });
    await new Promise(resolve => setImmediate(resolve));
    expect(() => stream.next()).toThrow('disk gone');
    stream.close();
  });
});

describe('mistakes are named', () => {
  const source = numberedSource([30, 4]);
  const windows = trainingWindows(source, 20, 'latest');
  test('a budget below the longest sequence', () => {
    expect(() => new BatchPlan({ windows, size: { tokens: 19 }, seed: 0 })).toThrow('longest sequence, 20 tokens');
  });
  test('sizes that are no counts', () => {
    expect(() => new BatchPlan({ windows, size: { tokens: 0 }, seed: 0 })).toThrow('batch.tokens is 0');
    expect(() => new BatchPlan({ windows, size: { users: 1.5 }, seed: 0 })).toThrow('batch.users is 1.5');
    expect(() => trainingWindows(source, 0, 'latest')).toThrow('got 0');
  });
  test('places that do not exist', () => {
    const plan = new BatchPlan({ windows, size: { users: 1 }, seed: 0 });
    expect(() => plan.batch({ epoch: 0, position: 2 })).toThrow('that epoch has 2 batches');
    expect(() => plan.batch({ epoch: -1, position: 0 })).toThrow('got -1');
    expect(() => plan.advance({ epoch: 0, position: -1 }, 0)).toThrow('no batch -1');
  });
  test('nothing to train on', () => {
    const empty = numberedSource([1, 2]);
    const plan = new BatchPlan({ windows: trainingWindows(empty, 4, 'latest'), size: { users: 1 }, seed: 0 });
    expect(() => plan.advance(START)).toThrow('fewer than two events');
  });
});
