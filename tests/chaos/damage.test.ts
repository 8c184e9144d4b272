// Two hundred damaged runs, stores, checkpoints and bundles: each is used, and gives the same results as before or is refused
// with a reason. `node scripts/damage-runs.mjs` is the long form.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { z } from 'zod';

const SCRIPT = fileURLToPath(new URL('../../scripts/damage-runs.mjs', import.meta.url));

test('nothing damaged is used in silence, hangs, dies or ends in a stack', async () => {
  const child = spawn(process.execPath, [SCRIPT, '--mutations', '200', '--seed', '18'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [counts, faults] = ['', ''];
  child.stdout.on('data', chunk => {
    counts += String(chunk);
  });
  child.stderr.on('data', chunk => {
    faults += String(chunk);
  });
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  expect({ code, faults }).toEqual({ code: 0, faults: '' });
  const { refused, harmless, ...rest } = z.record(z.string(), z.int()).parse(JSON.parse(counts));
  expect(rest).toEqual({ mutations: 200, silent: 0, raw: 0, died: 0, hang: 0 });
  expect(refused! + harmless!).toBe(200);
  expect(Math.min(refused!, harmless!)).toBeGreaterThan(40); // both ways out are taken
}, 400_000);
