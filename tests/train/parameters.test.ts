import { expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/resolve.js';
import { buildDefinition } from '../../src/nn/build.js';
import { countParameters } from '../../src/nn/parameter-spec.js';

function blockParameters(recipe: string): number {
  return countParameters(buildDefinition(resolveConfig({ recipe }).model, true).parameters);
}

test("the paper's sizes have the paper's parameters", () => {
  // 16 blocks of width 1024: 5 D^2 + D for HSTU, 12 D^2 + D for FuXi, and bias tables of 2N - 1 and 129 entries.
  expect(blockParameters('hstu-large')).toBe(16 * (5 * 1024 ** 2 + 1024 + 4095 + 129));
  expect((blockParameters('hstu-large') / 1e6).toFixed(2)).toBe('83.97');
  for (const recipe of ['fuxi-large', 'fuxi-long']) {
    expect(blockParameters(recipe)).toBe(16 * (12 * 1024 ** 2 + 1024 + 8191 + 129));
    expect((blockParameters(recipe) / 1e6).toFixed(1)).toBe('201.5');
  }
});

test('useful FLOPs follow the stated formula', () => {
  for (const [kind, channels] of [
    ['hstu', 1],
    ['fuxi', 2],
  ] as const) {
    const { model } = resolveConfig({ model: { kind, d: 64, heads: 4, blocks: 3 } });
    const definition = buildDefinition(model, true);
    const matrices = countParameters(definition.parameters.filter(spec => spec.rows > 1));
    const n = 50;
    expect(definition.flops(n)).toBe(6 * matrices * n + channels * 6 * 64 * 3 * n * (n + 1));
  }
});
