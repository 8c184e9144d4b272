// The whole equality matrix: every model, loss and table optimiser of tests/cluster/ways.ts, on 1 to 4 ranks, with 1 and 2
// threads, in every group size, overlapped and not, rows read fresh, stale and exact; under every MPI of this machine.
// All ways of a kind must end with the same digest and losses.
//
//   node scripts/equality-matrix.mjs [--steps 50] [--setting <part of a name>]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createJiti } from 'jiti';
import { prepare } from '../dist/data/prepare/prepare.js';
import { synthesize } from '../dist/data/synth/synthesize.js';
import { findLauncher } from '../dist/dist/launch/find-mpi.js';
import { MPI_KINDS } from '../dist/dist/launch/mpi-kind.js';

const { values } = parseArgs({ options: { steps: { type: 'string' }, setting: { type: 'string' } } });
const steps = values.steps ?? '50';
const { SETTINGS, wayOf } = await createJiti(import.meta.url).import('../tests/cluster/ways.ts');
const path = name => fileURLToPath(new URL(name, import.meta.url));
const [main, program] = [path('../dist/cli/main.js'), path('../tests/cluster/programs/equality.mjs')];

const GROUPS = { 1: [1], 2: [1, 2], 3: [1, 3], 4: [1, 2, 4] };

function waysOf(setting) {
  const ahead = /full|adamw/.test(setting) ? [0] : [0, 1, 2, 'exact'];
  const ways = [];
  for (const staleness of ahead)
    for (const ranks of [1, 2, 3, 4])
      for (const groupSize of GROUPS[ranks])
        for (const threads of [1, 2])
          for (const overlap of ['off', 'on']) {
            ways.push(wayOf(setting, { ranks, groupSize, threads, overlap, staleness }));
          }
  return ways;
}

const kinds = MPI_KINDS.filter(kind => {
  try {
    return findLauncher(kind);
  } catch {
    return false;
  }
});
if (kinds.length === 0) {
  process.stdout.write('no MPI on this machine: nothing was compared\n');
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'turbogr-matrix-'));
const expected = new Map();
let [compared, different] = [0, 0];
try {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 400, videos: 2500, meanLength: 40, margin: false });
  await prepare({ files: [log], out: join(folder, 'store') });
  for (const mpi of kinds) {
    for (const setting of Object.keys(SETTINGS).filter(name => name.includes(values.setting ?? ''))) {
      const ways = waysOf(setting);
      const args = [
        main,
        'launch',
        '--mpi',
        mpi,
        '-n',
        '4',
        program,
        join(folder, 'store'),
        steps,
        JSON.stringify(ways),
      ];
      const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
      if (status !== 0) throw new Error(`${mpi}, ${setting}: ${stderr}`);
      const results = stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line));
      results.forEach(({ digest, losses }, i) => {
        const { kind, name } = ways[i];
        const result = JSON.stringify({ digest, losses });
        if (!expected.has(kind)) expected.set(kind, result);
        compared++;
        if (result === expected.get(kind)) return;
        different++;
        process.stdout.write(`${mpi}: ${name} differs\n`);
      });
      process.stdout.write(`${mpi}: ${setting}: ${results.length} ways of ${steps} steps\n`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${compared} ways, ${expected.size} results, ${different} different\n`);
process.exitCode = different > 0 ? 1 : 0;
