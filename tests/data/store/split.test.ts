import { describe, expect, it } from 'vitest';
import {
  type SplitRule,
  checkLeakage,
  makeSplit,
  parseSplit,
  splitFingerprint,
} from '../../../src/data/store/split.js';

const TIMES = [Float64Array.of(1, 2, 3, 4), Float64Array.of(2, 2), Float64Array.of(5, 6, 7)];
const LENGTHS = Int32Array.from(TIMES, times => times.length);

function split(rule: SplitRule) {
  return makeSplit(rule, {
    lengths: LENGTHS,
    eventsBefore: (user, time) => TIMES[user]?.filter(t => t < time).length ?? 0,
    originalUser: user => `user ${user}`,
  });
}

describe('split', () => {
  it('leaves the last event for the test and the one before for validation', () => {
    const { trainEnd, validationEnd } = split({ kind: 'leave-one-out' });
    expect([...trainEnd]).toEqual([2, 2, 1]);
    expect([...validationEnd]).toEqual([3, 2, 2]);
  });

  it('cuts at times', () => {
    const { trainEnd, validationEnd } = split({ kind: 'time', validationFrom: 2, testFrom: 6 });
    expect([...trainEnd]).toEqual([1, 0, 0]);
    expect([...validationEnd]).toEqual([4, 2, 1]);
  });

  it('draws users by a hash of their own id: other users do not matter, the parts are disjoint and of the size asked for', () => {
    const lengths = new Int32Array(4000).fill(2);
    const rule = { kind: 'user', share: 0.1 } as const;
    const draw = (first: number) =>
      makeSplit(rule, { lengths, eventsBefore: () => 0, originalUser: user => String(user + first) });
    const { trainEnd, validationEnd } = draw(0);
    const parts = Array.from(trainEnd, (train, u) =>
      train > 0 ? 'train' : (validationEnd[u] ?? 0) > 0 ? 'validation' : 'test',
    );
    for (const part of ['validation', 'test']) {
      expect(parts.filter(p => p === part).length / 4000).toBeGreaterThan(0.085);
      expect(parts.filter(p => p === part).length / 4000).toBeLessThan(0.115);
    }
    expect([...draw(1000).trainEnd.subarray(0, 3000)]).toEqual([...trainEnd.subarray(1000)]);
  });

  it('reads its rule from text', () => {
    const parse = (text: string) => parseSplit(text, Number);
    expect(parse('leave-one-out')).toEqual({ kind: 'leave-one-out' });
    expect(parse('time:5')).toEqual({ kind: 'time', validationFrom: 5, testFrom: 5 });
    expect(parse('time:5,8')).toEqual({ kind: 'time', validationFrom: 5, testFrom: 8 });
    expect(parse('user:0.2')).toEqual({ kind: 'user', share: 0.2 });
  });

  it.each(['', 'time', 'time:', 'time:8,5', 'user:0.5', 'user:x', 'user:', 'last'])('refuses the rule %j', wrong => {
    expect(() => parseSplit(wrong, Number)).toThrow(/is not a split/);
  });

  it('has a fingerprint that changes with every part of its content', () => {
    const base = { split: split({ kind: 'leave-one-out' }), lengths: LENGTHS, items: 9, content: ['a', 'b'] };
    const variants = [
      base,
      { ...base, items: 10 },
      { ...base, content: ['b', 'a'] },
      { ...base, split: split({ kind: 'none' }) },
      { ...base, lengths: Int32Array.of(4, 3, 2) },
    ];
    expect(new Set(variants.map(splitFingerprint)).size).toBe(variants.length);
    expect(splitFingerprint({ ...base })).toBe(splitFingerprint(base));
  });
});

describe('leakage check', () => {
  const check = (
    rule: SplitRule,
    change: (s: { trainEnd: Int32Array; validationEnd: Int32Array }) => void,
    times = TIMES,
  ) => {
    const made = split(rule);
    change(made);
    checkLeakage({ rule, split: made, lengths: LENGTHS, times: user => times[user] });
  };
  const rules: SplitRule[] = [
    { kind: 'none' },
    { kind: 'leave-one-out' },
    { kind: 'time', validationFrom: 2, testFrom: 6 },
    { kind: 'user', share: 0.3 },
  ];

  it.each(rules)('passes a sound split: $kind', rule => {
    expect(() => check(rule, () => {})).not.toThrow();
  });

  it('fails when a test event trains', () => {
    expect(() => check({ kind: 'leave-one-out' }, s => (s.trainEnd[0] = 3))).toThrow(/leaks: user 0 trains on 3 of 4/);
    expect(() => check({ kind: 'time', validationFrom: 2, testFrom: 6 }, s => (s.trainEnd[2] = 1))).toThrow(
      /leaks: user 2 has event 0 at 5 in part 0/,
    );
    expect(() => check({ kind: 'user', share: 0.3 }, s => (s.trainEnd[0] = s.validationEnd[0] = 1))).toThrow(
      /not on all or none/,
    );
  });

  it('fails when parts overlap, a user is missing, or events are not in order of time', () => {
    expect(() => check({ kind: 'none' }, s => (s.validationEnd[1] = 1))).toThrow(/has parts 2, 1 of 2 events/);
    expect(() => check({ kind: 'none' }, s => Object.assign(s, { trainEnd: Int32Array.of(4) }))).toThrow(
      /no place in the split/,
    );
    const unordered = [Float64Array.of(1, 2, 4, 3), ...TIMES.slice(1)];
    expect(() => check({ kind: 'leave-one-out' }, () => {}, unordered)).toThrow(/event 3 at 3, before event 2 at 4/);
  });
});
