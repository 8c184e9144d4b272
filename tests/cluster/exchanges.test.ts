// Every exchange between ranks, under each MPI of this machine and without any; and what is refused at the start.

import { expect, test } from 'vitest';
import { fileURLToPath } from 'node:url';
import { launch, MPIS, mpirun, run } from './mpi.js';

const PROGRAM = fileURLToPath(new URL('./programs/exchanges.mjs', import.meta.url));
const READY = MPIS.length > 0;

test('a process on its own is a world of one rank', async () => {
  const { stdout, stderr } = await run(process.execPath, [PROGRAM]);
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({ size: 1, library: '', faults: [] });
});

test.skipIf(!READY).each(MPIS.flatMap(kind => [1, 2, 3].map(ranks => ({ kind, ranks }))))(
  '$ranks ranks exchange over $kind',
  async ({ kind, ranks }) => {
    const { code, stdout } = await mpirun(kind, ranks, 'exchanges.mjs');
    expect(JSON.parse(stdout)).toMatchObject({ size: ranks, faults: [] });
    expect(code).toBe(0);
  },
);

test.skipIf(!READY)('the launcher reports who is where', async () => {
  const { code, stdout } = await launch(MPIS[0]!, 2, 'ranks', '--seconds', '0.2', '--json');
  const { rows }: { rows: { rank: number; rate: number }[] } = JSON.parse(stdout);
  expect(rows.map(({ rank }) => rank)).toEqual([0, 1]);
  expect(rows.every(({ rate }) => rate > 0)).toBe(true);
  expect(code).toBe(0);
});

test.skipIf(MPIS.length < 2)('a library of another MPI than the launcher is refused once', async () => {
  const other = MPIS.find(kind => kind !== MPIS[0])!;
  const args = ['launch', '--mpi', MPIS[0]!, '-n', '2', 'ranks'];
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const { code, stderr } = await run(process.execPath, [main, ...args], { TURBOGR_MPI: other });
  expect(stderr.match(/^turbogr: /gm)).toHaveLength(1);
  expect(stderr).toMatch(/started by .* but opened|2 ranks were started, but MPI connects 1/);
  expect(code).toBe(2);
});

test('without MPI the message says how to install it', async () => {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const { code, stderr } = await run(process.execPath, [main, 'launch', '-n', '2', 'ranks'], { PATH: '/nowhere' });
  expect(stderr).toContain('apt-get install openmpi-bin libopenmpi-dev');
  expect(code).toBe(2);
});
