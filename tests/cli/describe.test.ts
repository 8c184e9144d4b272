import { expect, test } from 'vitest';
import { describeStart } from '../../src/cli/describe.js';
import { resolveConfig } from '../../src/config/resolve.js';

function lines(tokensPerEpoch: number, tokens: number): string[] {
  const config = resolveConfig({ batch: { tokens } });
  const counts = { users: 10, items: 20, totalSteps: 30, denseParameters: 5, blockParameters: 4, tableParameters: 9 };
  const nothing = { choices: [], prepared: undefined, untrainedEvents: 0, trainingEvents: 0 };
  const start = { run: 'runs/x', config, model: 'hstu', tokensPerEpoch, ...counts, ...nothing, peakFlops: 1 };
  return describeStart(start).split('\n');
}

test('a log too small for its batches is told, with a size that fits', () => {
  expect(lines(6686, 8192).at(-1)).toContain('--set batch.tokens=256');
  expect(lines(6686, 256)).toHaveLength(3);
  expect(lines(1_000_000, 8192)).toHaveLength(3);
  // A batch must hold the longest sequence, so there is nothing smaller to advise.
  expect(lines(300, 200)).toHaveLength(3);
});
