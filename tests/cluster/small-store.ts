// A small store that the tests of several ranks train on: made before the tests of a file, removed after them.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { MPIS } from './mpi.js';

/** The path that it will have; nothing is made where there is no MPI. */
export function smallStore(): string {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-ranks-'));
  const store = join(folder, 'store');
  beforeAll(async () => {
    if (MPIS.length === 0) return;
    const log = join(folder, 'log.csv');
    await synthesize({ out: log, users: 120, videos: 2500, meanLength: 40, margin: false });
    await prepare({ files: [log], out: store });
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return store;
}
