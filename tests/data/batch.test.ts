// Windows, plans, buffers and the stream: coverage, budgets, and that resuming changes nothing.
import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { BatchPlan, type BatchSize } from '../../src/data/batch/batch-plan.js';
import { BatchStream } from '../../src/data/batch/batch-stream.js';
import { BatchBuffer, type SourceBatch } from '../../src/data/batch/batch-buffer.js';
import {
  evaluationWindows,
  sampleUsers,
  trainingWindows,
  windowsPart,
  windowTokens,
} from '../../src/data/batch/windows.js';
import { MemorySource } from '../../src/data/memory-source.js';

/** Users with the given numbers of events; event e of the whole log has item e, time 10 e, action -e. */
function numberedSource(lengths: number[]): MemorySource {
  const offsets = Int32Array.from([0, ...lengths]);
  for (let u = 0; u < lengths.length; u++) offsets[u + 1]! += offsets[u]!;
  const events = offsets[lengths.length]!;
  const item = Int32Array.from({ length: events }, (_, e) => e);
  return new MemorySource({
    items: events,
    offsets,
    item,
    time: BigInt64Array.from(item, e => 10n * BigInt(e)),
    action: item.map(e => -e),
  });
}

const ragged = fc.array(fc.nat({ max: 40 }), { maxLength: 30 });
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

describe('evaluation windows', () => {
  test('end at the held-out event with the newest history before it', () => {
    fc.assert(
      fc.property(ragged, fc.integer({ min: 1, max: 12 }), (lengths, maxLength) => {
        const source = numberedSource(lengths);
        for (const part of ['validation', 'test'] as const) {
          const windows = evaluationWindows(source, { part, maxLength });
          const withTarget = lengths.flatMap((length, u) => (length >= (part === 'test' ? 2 : 3) ? [u] : []));
          expect([...windows.user]).toEqual(withTarget);
          for (let w = 0; w < windows.count; w++) {
            const target = lengths[windows.user[w]!]! - (part === 'test' ? 1 : 2);
            expect(windows.to[w]).toBe(target + 1);
            expect(windows.from[w]).toBe(Math.max(0, target - maxLength));
          }
        }
      }),
    );
  });

  test('never put a target among the training targets', () => {
    fc.assert(
      fc.property(cases, example => {
        const { source, windows } = planOf(example);
        const trained = new Set<string>();
        for (let w = 0; w < windows.count; w++) {
          for (let e = windows.from[w]!; e < windows.to[w]!; e++) trained.add(`${windows.user[w]} ${e}`);
        }
        for (const part of ['validation', 'test'] as const) {
          const held = evaluationWindows(source, { part, maxLength: 5 });
          for (let w = 0; w < held.count; w++) expect(trained).not.toContain(`${held.user[w]} ${held.to[w]! - 1}`);
        }
      }),
    );
  });

  test('may predict several events of a user, oldest first', () => {
    const split = { kind: 'time:5', trainEnd: Int32Array.of(2, 0), validationEnd: Int32Array.of(2, 0) };
    const item = Int32Array.from({ length: 8 }, (_, i) => i);
    const source = new MemorySource({ items: 8, offsets: Int32Array.of(0, 5, 8), item, split });
    const cases = (targetsPerUser?: number) => {
      const windows = evaluationWindows(source, {
        part: 'test',
        maxLength: 9,
        ...(targetsPerUser && { targetsPerUser }),
      });
      return [...windows.user].map((user, w) => [user, windows.to[w]! - 1]);
    };
    // User 1's first event has no history to predict it from.
    expect(cases()).toEqual([
      [0, 2],
      [1, 1],
    ]);
    expect(cases(2)).toEqual([
      [0, 2],
      [0, 3],
      [1, 1],
      [1, 2],
    ]);
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

test('a user held out whole is predicted from the second event on: the first has no history', () => {
  const source = numberedSource([4, 1, 6]);
  const none = new Int32Array(3);
  const held = new MemorySource({
    items: 11,
    offsets: Int32Array.of(0, 4, 5, 11),
    item: Int32Array.from({ length: 11 }, (_, e) => e),
    split: { kind: 'user:0.4', trainEnd: none, validationEnd: source.lengths },
  });
  const ends = (targetsPerUser: number) =>
    [...evaluationWindows(held, { part: 'validation', maxLength: 9, targetsPerUser }).to].join(' ');
  expect(ends(1)).toBe('2 2');
  expect(ends(3)).toBe('2 3 4 2 3 4');
});

test('a sample of users keeps all of their windows, in order, and fewer users are among the more', () => {
  const windows = trainingWindows(numberedSource(Array.from({ length: 40 }, (_, u) => u)), 5, 'sliding');
  const usersOf = (count?: number) => new Set(sampleUsers(windows, count, 'test').user);
  for (const count of [1, 7, 20]) {
    const few = usersOf(count);
    expect(few.size).toBe(count);
    const more = usersOf(count + 5);
    for (const user of few) expect(more.has(user)).toBe(true);
    const sampled = sampleUsers(windows, count, 'test');
    const kept = Array.from(windows.user.keys()).filter(w => few.has(windows.user[w]!));
    expect([...sampled.from]).toEqual(kept.map(w => windows.from[w]));
    expect([...sampled.to]).toEqual(kept.map(w => windows.to[w]));
  }
  expect(sampleUsers(windows, undefined, 'test')).toBe(windows);
  expect([...usersOf(7)]).not.toEqual([...new Set(sampleUsers(windows, 7, 'another').user)]);
});

test('parts of windows follow each other, leave none out, and have about the same number of tokens', () => {
  fc.assert(
    fc.property(ragged, fc.integer({ min: 1, max: 9 }), (lengths, count) => {
      const windows = trainingWindows(numberedSource(lengths), 12, 'sliding');
      const parts = Array.from({ length: count }, (_, index) => windowsPart(windows, { index, count }));
      const tokens = parts.map(part => Array.from(part.user, (_, w) => windowTokens(part, w)));
      const columns = ['user', 'from', 'to'] as const;
      for (const column of columns) expect(parts.flatMap(part => [...part[column]])).toEqual([...windows[column]]);
      const sum = (of: readonly number[]) => of.reduce((so, n) => so + n, 0);
      for (const part of tokens) expect(Math.abs(sum(part) - sum(tokens.flat()) / count)).toBeLessThanOrEqual(12);
    }),
  );
});
