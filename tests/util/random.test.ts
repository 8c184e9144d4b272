// Philox against the known-answer vectors published with the algorithm, then the properties consumers rely on.
import { describe, expect, test } from 'vitest';
import { philox, Random } from '../../src/util/random.js';

const knownAnswers: [counter: number[], key: number[], out: number[]][] = [
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
];

test.each(knownAnswers)('philox of counter %j under key %j', (counter, key, expected) => {
  const out = new Uint32Array(4);
  philox(Uint32Array.from(key), Uint32Array.from(counter), out);
  expect([...out]).toEqual(expected);
});

describe('Random', () => {
  const take = (random: Random, count: number) => Array.from({ length: count }, () => random.uint32());

  test('is a function of seed, purpose and stream alone', () => {
    const first = take(new Random(7, 'shuffle', 3, 4), 9);
    const rewound = new Random(7, 'shuffle');
    take(rewound, 5);
    expect(take(rewound.stream(3, 4), 9)).toEqual(first);
    expect(take(new Random(8, 'shuffle', 3, 4), 9)).not.toEqual(first);
    expect(take(new Random(7 + 2 ** 32, 'shuffle', 3, 4), 9)).not.toEqual(first);
    expect(take(new Random(7, 'times', 3, 4), 9)).not.toEqual(first);
    expect(take(new Random(7, 'shuffle', 4, 3), 9)).not.toEqual(first);
  });

  test('rewinding drops a spare normal', () => {
    const random = new Random(1, 'n');
    const first = random.normal();
    expect(random.stream(0).normal()).toBe(first);
  });

  test('has the moments of its distributions', () => {
    const random = new Random(11, 'moments');
    const count = 200_000;
    let [uniform, normal, square, exponential] = [0, 0, 0, 0];
    for (let i = 0; i < count; i++) {
      uniform += random.uniform();
      const z = random.normal();
      normal += z;
      square += z * z;
      exponential += random.exponential();
    }
    expect(uniform / count).toBeCloseTo(0.5, 2);
    expect(normal / count).toBeCloseTo(0, 1);
    expect(square / count).toBeCloseTo(1, 1);
    expect(exponential / count).toBeCloseTo(1, 1);
  });

  test('below(n) covers [0, n) evenly, and works up to 2^32', () => {
    const random = new Random(5, 'below');
    const counts = new Float64Array(7);
    for (let i = 0; i < 70_000; i++) counts[random.below(7)]!++;
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
    expect(random.below(1)).toBe(0);
    expect(random.below(2 ** 32)).toBeLessThan(2 ** 32);
  });

  test('shuffle is a permutation', () => {
    const values = Int32Array.from({ length: 1000 }, (_, i) => i);
    new Random(3, 'shuffle').shuffle(values);
    expect([...values]).not.toEqual([...values].toSorted((x, y) => x - y));
    expect(new Set(values).size).toBe(1000);
  });

  test.each([-1, 0.5, Number.NaN, 2 ** 53])('refuses seed %s', seed => {
    expect(() => new Random(seed, 'x')).toThrow(`got ${seed}`);
  });
});
