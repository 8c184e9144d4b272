// The equality matrix: every model, loss and table optimiser of tests/cluster/ways.ts, on 1 to 4 ranks, with 1 and 2 threads, in
// every group size, overlapped or not, with two and six lanes in flight, rows read fresh, stale and exact; under every MPI of
// this machine. All combinations of a kind must end with the same digest and losses.
//
//   node scripts/equality-matrix.mjs [--pairs] [--steps 50] [--setting <part of a name>] [--mpi openmpi|mpich]
//
// --pairs: a pairwise-covering subset (what CI runs).
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

const { values } = parseArgs({
  options: {
    pairs: { type: 'boolean', default: false },
    steps: { type: 'string', default: '50' },
    setting: { type: 'string', default: '' },
    mpi: { type: 'string', default: '' },
  },
});
const { SETTINGS, wayOf } = await createJiti(import.meta.url).import('../tests/cluster/ways.ts');
const path = name => fileURLToPath(new URL(name, import.meta.url));
const [main, program] = [path('../dist/cli/main.js'), path('../tests/cluster/programs/equality.mjs')];

const LAYOUTS = [
  [1, 1],
  [2, 1],
  [2, 2],
  [3, 1],
  [3, 3],
  [4, 1],
  [4, 2],
  [4, 4],
];
/** Overlap, and lanes in flight: one without overlap. */
const ORDERS = [
  ['off', 2],
  ['on', 2],
  ['on', 6],
];
const REFERENCE = { layout: '1/1', threads: 1, order: 'off/2' };

/** Every combination, as its columns. */
function combinations(kinds) {
  const all = [];
  for (const mpi of kinds)
    for (const setting of Object.keys(SETTINGS).filter(name => name.includes(values.setting)))
      for (const staleness of /full|adamw/.test(setting) ? [0] : [0, 1, 2, 'exact'])
        for (const layout of LAYOUTS)
          for (const threads of [1, 2])
            for (const order of ORDERS)
              all.push({ mpi, setting, staleness, layout: layout.join('/'), threads, order: order.join('/') });
  return all;
}

/** The pairs of values that a combination has, as text. */
function pairsOf(combination) {
  const entries = Object.entries(combination).map(([column, value]) => `${column} ${value}`);
  return entries.flatMap((one, i) => entries.slice(i + 1).map(other => `${one}, ${other}`));
}

/** Greedy cover: always the first combination that adds the most missing pairs. */
function coverPairs(all) {
  const missing = new Set(all.flatMap(pairsOf));
  const chosen = [];
  while (missing.size > 0) {
    const gains = all.map(combination => pairsOf(combination).filter(pair => missing.has(pair)).length);
    const best = all[gains.indexOf(Math.max(...gains))];
    for (const pair of pairsOf(best)) missing.delete(pair);
    chosen.push(best);
  }
  return chosen;
}

function wayFor({ setting, staleness, layout, threads, order }) {
  const [ranks, groupSize] = layout.split('/').map(Number);
  const [overlap, pipeline] = order.split('/');
  return wayOf(setting, { ranks, groupSize, threads, overlap, pipeline: Number(pipeline), staleness });
}

/** Results of several combinations, in one launch of the ranks. */
function train(mpi, store, ways) {
  const args = [main, 'launch', '--mpi', mpi, '-n', '4', program, store, values.steps, JSON.stringify(ways)];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`${mpi}, ${ways[0].name} and others: ${stderr}`);
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
}

const kinds = MPI_KINDS.filter(kind => {
  try {
    return kind.includes(values.mpi) && findLauncher(kind);
  } catch {
    return false;
  }
});
if (kinds.length === 0) {
  process.stdout.write('no MPI on this machine: nothing was compared\n');
  process.exit(0);
}

const all = combinations(kinds);
const isReference = combination => Object.entries(REFERENCE).every(([column, value]) => combination[column] === value);
const chosen = values.pairs
  ? [...new Set([...all.filter(one => one.mpi === kinds[0] && isReference(one)), ...coverPairs(all)])]
  : all;
const folder = mkdtempSync(join(tmpdir(), 'turbogr-matrix-'));
/** By kind, the result of its first combination. */
const expected = new Map();
let [compared, different] = [0, 0];
const started = performance.now();
try {
  const [log, store] = [join(folder, 'log.csv'), join(folder, 'store')];
  await synthesize({ out: log, users: 400, videos: 2500, meanLength: 40, margin: false });
  await prepare({ files: [log], out: store });
  const batchOf = ({ mpi, setting }) => `${mpi}: ${setting}`;
  for (const batch of new Set(chosen.map(batchOf))) {
    const some = chosen.filter(one => batchOf(one) === batch);
    const ways = some.map(wayFor);
    train(some[0].mpi, store, ways).forEach(({ digest, losses }, i) => {
      const { kind, name } = ways[i];
      const result = JSON.stringify({ digest, losses });
      if (!expected.has(kind)) expected.set(kind, result);
      compared++;
      if (result === expected.get(kind)) return;
      different++;
      process.stdout.write(`${some[0].mpi}: ${name} differs\n`);
    });
    process.stdout.write(`${batch}: ${ways.length} ways of ${values.steps} steps\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const seconds = ((performance.now() - started) / 1000).toFixed(0);
process.stdout.write(`${compared} ways, ${expected.size} results, ${different} different, ${seconds} s\n`);
process.exitCode = different > 0 ? 1 : 0;
