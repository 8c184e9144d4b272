// What several ranks hold is compared every few steps; one wrong number ends the job with one message that names the place.

import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { blockOf } from '../../src/train/replica-check.js';
import { launch, MPIS } from './mpi.js';
import { smallStore } from './small-store.js';

const PROGRAM = fileURLToPath(new URL('./programs/replicas.mjs', import.meta.url));
const store = smallStore();
const READY = MPIS.length > 0;

test.skipIf(!READY)('replicas that agree are left alone', async () => {
  const { code, stdout, stderr } = await launch(MPIS[0]!, 4, PROGRAM, store, '-1', 'sampled-softmax');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.trim().split('\n')).toHaveLength(6);
});

test.skipIf(!READY)('a row that differs between groups is found', async () => {
  const { code, stdout, stderr } = await launch(MPIS[0]!, 4, PROGRAM, store, '3', 'sampled-softmax');
  expect(stdout.trim().split('\n')).toEqual(['step 1', 'step 2', 'step 3']);
  expect(stderr.match(/turbogr: /g)).toHaveLength(1);
  expect(stderr).toMatch(/after step 4 table "items" of rank 3 \(group 1\) differs from that of rank 1 \(group 0\)/);
  expect(code).not.toBe(0);
});

test.skipIf(!READY)('of four replicas the one is named that differs from the others', async () => {
  const { code, stderr } = await launch(MPIS[0]!, 4, PROGRAM, store, '0', 'full-softmax');
  expect(stderr.match(/turbogr: /g)).toHaveLength(1);
  expect(stderr).toMatch(/after step 4 table "items" of rank 0 \(group 0\) differs from that of rank 1 \(group 0\)/);
  expect(code).not.toBe(0);
});

test('every row has its turn', () => {
  const table = { rows: 100_001, cols: 64 };
  const seen = new Set<number>();
  for (let turn = 1; turn <= Math.ceil((table.rows * table.cols * 4) / 2 ** 20); turn++) {
    const { from, count } = blockOf(table, turn);
    expect(count * table.cols * 4).toBeLessThanOrEqual(2 ** 20);
    for (let row = from; row < from + count; row++) seen.add(row);
  }
  expect(seen.size).toBe(table.rows);
});
