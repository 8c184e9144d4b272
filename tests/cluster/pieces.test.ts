// Exchanges of any size move in pieces: no call of the thread that also sends heartbeats moves more than a bounded number of bytes.
// Counts of MPI are 32 bits wide; TURBOGR_LONG=1 moves parts of more bytes than that, through little memory.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { shimFiles } from '../../src/dist/launch/build-shim.js';
import { findCompiler, findLauncher } from '../../src/dist/launch/find-mpi.js';
import type { MpiKind } from '../../src/dist/launch/mpi-kind.js';
import { mpirunArguments } from '../../src/dist/launch/mpirun-line.js';
import { MPIS, run } from './mpi.js';

const READY = MPIS.length > 0 && process.platform === 'linux';
const PROGRAM = fileURLToPath(new URL('./programs/pieces.c', import.meta.url));
const MB = 2 ** 20;
const PART = 40 * MB + 12_345;
/** What a test may finish, what it may post and so receive at once, 16 MB each, and pieces of the own part. */
const MOST = 34 * MB;
const folder = mkdtempSync(join(tmpdir(), 'turbogr-pieces-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The program, linked with the shim's sources. */
function compile(kind: MpiKind): string {
  const files = shimFiles();
  const program = join(folder, kind);
  const sources = files.filter(file => file.endsWith('.c'));
  const flags = ['-O2', '-Wall', '-Wextra', '-Werror', `-I${dirname(files[0]!)}`, PROGRAM, ...sources, '-o', program];
  const { stderr } = spawnSync(findCompiler(kind).command, flags, { encoding: 'utf8' });
  expect(stderr).toBe('');
  return program;
}

async function exchange(kind: MpiKind, ranks: number, ...bytes: number[]) {
  const start = mpirunArguments(kind, { count: ranks, extra: [], environment: {} });
  const { code, stdout, stderr } = await run(findLauncher(kind).command, [
    ...start,
    compile(kind),
    ...bytes.map(String),
  ]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const lines: { wrong: number; most: number }[] = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  expect(lines.map(({ wrong }) => wrong)).toEqual(Array(ranks).fill(0));
  return Math.max(...lines.map(({ most }) => most));
}

test.skipIf(!READY).each(MPIS)('%s: a call moves a bounded number of bytes', async kind => {
  const most = await exchange(kind, 2, PART);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(MOST);
});

test.skipIf(!READY).each(MPIS)('%s: more flows than a window has room for', async kind => {
  expect(await exchange(kind, 6, 4 * MB + 1)).toBeLessThanOrEqual(MOST);
});

test.skipIf(!READY || process.env['TURBOGR_LONG'] !== '1').each(MPIS)(
  '%s: parts of more than 2 GB',
  async kind => {
    expect(await exchange(kind, 2, 2 ** 31 + 16 * MB, 16 * MB)).toBeGreaterThan(0);
  },
  600_000,
);
