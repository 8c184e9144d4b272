import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { buildDefinition } from '../../src/nn/build.js';
import { SECONDS_PER_DAY } from '../../src/nn/time-bias.js';
import { countParameters } from '../../src/nn/parameter-spec.js';

function blockParameters(recipe: string): number {
  return countParameters(buildDefinition(resolveConfig({ recipe }).model, SECONDS_PER_DAY).parameters);
}

// Millions of parameters in the blocks: what our definitions give, and what the paper states.
test.each([
  ['paper-hstu-tiny', 0.17, 0.17],
  ['paper-hstu-small', 1.33, 1.33],
  ['paper-hstu-medium', 10.52, 10.52],
  ['paper-hstu-large', 83.97, 83.97],
  ['paper-hstu-long', 84.03, 83.97], // the paper does not count the longer position bias
  ['paper-fuxi-tiny', 0.41, 0.41],
  ['paper-fuxi-small', 3.18, 3.18],
  ['paper-fuxi-medium', 25.24, 25.22],
  ['paper-fuxi-large', 201.47, 201.55],
  ['paper-fuxi-long', 201.47, 201.55],
])('%s has %f M parameters (paper: %f M)', (recipe, ours, paper) => {
  const millions = blockParameters(recipe) / 1e6;
  expect(millions.toFixed(2)).toBe(ours.toFixed(2));
  expect(Math.abs(millions / paper - 1)).toBeLessThan(0.001 + 0.005 / paper);
});

test('parameters follow from width, depth and length', () => {
  // 5 D^2 + D per block for HSTU, 12 D^2 + D for FuXi; position bias 2N - 1; 33 time buckets, or 3 numbers.
  expect(blockParameters('paper-hstu-large')).toBe(16 * (5 * 1024 ** 2 + 1024 + 4095 + 33));
  expect(blockParameters('paper-fuxi-large')).toBe(16 * (12 * 1024 ** 2 + 1024 + 8191 + 3));
});

test('useful FLOPs follow the stated formula', () => {
  for (const [kind, channels] of [
    ['hstu', 1],
    ['fuxi', 2],
  ] as const) {
    const { model } = resolveConfig({ model: { kind, d: 64, heads: 4, blocks: 3 } });
    const definition = buildDefinition(model, SECONDS_PER_DAY);
    const matrices = countParameters(definition.parameters.filter(spec => spec.rows > 1));
    const n = 50;
    expect(definition.flops(n)).toBe(6 * matrices * n + channels * 6 * 64 * 3 * n * (n + 1));
  }
});
