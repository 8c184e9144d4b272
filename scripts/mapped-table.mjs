// Trains a table four times larger than the memory limit of the process: memory-mapped it trains, with the same bits as a table in
// memory without the limit; in memory, under the limit, it is refused. The limit is `ulimit -d`, which counts all private memory of
// a process but not the pages of mapped files. Linux. Needs the built command line: npm run build.
//
//   node scripts/mapped-table.mjs [--rows 5500000] [--limit 700] [--steps 3] [--folder /tmp]
//
// A limit on the pages of the file too, where systemd allows it: systemd-run --user --scope -p MemoryMax=700M
//   node scripts/mapped-table.mjs --child mapped

import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '5500000' },
    limit: { type: 'string', default: '700' }, // MB
    steps: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
    child: { type: 'string' },
  },
});
const [ROWS, LIMIT, WIDTH] = [Number(values.rows), Number(values.limit), 128];

if (values.child === undefined) compare();
else await train(values.child === 'mapped');

function compare() {
  const size = (ROWS * WIDTH * 4) / 1e6;
  console.log(
    `table of ${ROWS} x ${WIDTH} in f32: ${size.toFixed(0)} MB, ${(size / LIMIT).toFixed(1)} times ${LIMIT} MB`,
  );
  if (size < 4 * LIMIT) fail('the table is less than four times the limit; raise --rows or lower --limit');
  const mapped = run('mapped', LIMIT);
  console.log(`mapped, at most ${LIMIT} MB: ${mapped.out.trim() || `ended with ${mapped.status}: ${mapped.error}`}`);
  const refused = run('memory', LIMIT);
  console.log(`in memory, at most ${LIMIT} MB: ${refused.status === 0 ? 'it trained' : 'refused, as expected'}`);
  const memory = run('memory');
  console.log(`in memory, no limit: ${memory.out.trim() || memory.error}`);
  const digest = ({ out }) => /digest (\w+)/.exec(out)?.[1];
  if (mapped.status !== 0 || digest(mapped) === undefined) fail('the mapped table did not train');
  if (digest(mapped) !== digest(memory)) fail('the digests differ');
  if (refused.status === 0) fail('the limit did not hold');
  console.log('the same bits');
}

function run(kind, limit) {
  const args = Object.entries({ ...values, child: kind }).map(([key, value]) => `--${key}=${value}`);
  const command = [process.execPath, fileURLToPath(import.meta.url), ...args];
  const limited = limit === undefined ? 'exec "$@"' : `ulimit -d ${limit * 1000}; exec "$@"`;
  const { status, stdout, stderr } = spawnSync('sh', ['-c', limited, 'sh', ...command], { encoding: 'utf8' });
  return { status, out: stdout, error: stderr.trim().split('\n').slice(0, 6).join(' ') };
}

async function train(mapTables) {
  const from = path => import(new URL(`../dist/${path}`, import.meta.url));
  const [{ Device }, { Learner }, { resolveConfig }, { buildDefinition }, { drawBatch, drawLengths }] =
    await Promise.all(
      ['native/device', 'train/learner', 'config/resolve', 'nn/build', 'bench/random-batch'].map(path =>
        from(`${path}.js`),
      ),
    );
  const device = Device.open({ threads: 2 });
  const lengths = drawLengths(1024);
  const config = resolveConfig({
    model: { d: WIDTH, blocks: 1, heads: 2, maxLength: Math.max(...lengths) },
    loss: { negatives: { count: 32 } },
    optimizer: { table: 'row-adagrad' },
    batch: { tokens: 1024 },
    mapTables,
  });
  const { maxLength, dropout } = config.model;
  const definition = buildDefinition(config.model, 86_400);
  const features = { actions: 0, sideFeatures: [], scoring: config.loss };
  const shape = { definition, items: ROWS, positions: maxLength + 1, dropout, ...features };
  const counts = new Int32Array(ROWS).fill(1);
  const learner = new Learner({ device, config, shape, counts, tableFolder: values.folder });
  const steps = Number(values.steps);
  const losses = [];
  for (let step = 1; step <= steps; step++) {
    losses.push(await (await learner.step([drawBatch(lengths, ROWS)], { step, totalSteps: steps })).loss);
  }
  const digest = await learner.model.digest();
  console.log(`losses ${losses.map(loss => loss.toFixed(4)).join(' ')}, digest ${digest}`);
  device.dispose();
}

function fail(message) {
  console.error(`mapped-table: ${message}`);
  process.exit(1);
}
