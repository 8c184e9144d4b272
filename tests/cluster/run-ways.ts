// Trains in every way in one start of four ranks, see programs/equality.mjs.

import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { launch, MPIS } from './mpi.js';
import type { Way, WayResult } from './ways.js';

const PROGRAM = fileURLToPath(new URL('./programs/equality.mjs', import.meta.url));

export async function runWays(store: string, ways: readonly Way[], steps: number): Promise<(Way & WayResult)[]> {
  const { stdout, stderr, code } = await launch(MPIS[0]!, 4, PROGRAM, store, String(steps), JSON.stringify(ways));
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const found = stdout
    .trim()
    .split('\n')
    .map((line): WayResult => JSON.parse(line));
  return ways.map((way, i) => ({ ...way, ...found[i]! }));
}
