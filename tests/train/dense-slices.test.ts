// Dense parameters over ranks: every element has one owner, and owners have as much each as tiles allow.

import { expect, test } from 'vitest';
import { SQUARE_TILE } from '../../src/ops/square-sum.js';
import { divideDense, sliceStart } from '../../src/optim/dense-slices.js';

const MODELS: [string, number[]][] = [
  ['small', [3200, 16, 16, 1024, 256, 64, 7]],
  ['D = 512, two blocks', [51_200, 512, 512, 1_048_576, 262_144, 512, 512, 512, 1_048_576, 262_144, 512]],
  ['one element', [1]],
];

test.each(MODELS)('%s', (_name, sizes) => {
  for (const ranks of [1, 2, 3, 4, 17]) {
    const portions = divideDense(sizes, ranks);
    const held = Array.from({ length: ranks }, () => 0);
    const next = sizes.map(() => 0);
    for (const portion of portions) {
      expect(portion.start).toBe(next[portion.parameter]);
      portion.counts.forEach((count, rank) => {
        expect(count === 0 || sliceStart(portion, rank) % SQUARE_TILE === 0).toBe(true);
        expect(count * 4).toBeLessThanOrEqual(2 ** 20);
        held[rank]! += count;
        next[portion.parameter]! += count;
      });
    }
    expect(next).toEqual(sizes);
    expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(2 * SQUARE_TILE);
  }
});
