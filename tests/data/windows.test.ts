// Which events are predicted, and from which: windows of evaluation, samples of users, parts for ranks.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  evaluationWindows,
  sampleUsers,
  trainingWindows,
  windowsPart,
  windowTokens,
} from '../../src/data/batch/windows.js';
import { MemorySource } from '../../src/data/memory-source.js';
import { numberedSource, ragged } from '../support/numbered-source.js';

const policies = fc.constantFrom('latest' as const, 'sliding' as const);

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
      fc.property(ragged, fc.integer({ min: 1, max: 12 }), policies, (lengths, maxLength, policy) => {
        const source = numberedSource(lengths);
        const windows = trainingWindows(source, maxLength, policy);
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
