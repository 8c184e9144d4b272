// Effect of stale rows, and of rows sent in FP16, on quality: trains the same run with staleness 0, 1 and 2 and several seeds, and
// prints HR@10 and NDCG@10 on the test events with their spread, and alpha, the share of rows that were read before an update that
// changed them. Theory: docs/semi-async.md. Without a log it generates a small one.
//
//   npm run build && node scripts/staleness.mjs [--log events.csv ...] [--seeds 3] [--staleness 0 ...] [--wire f16]
//     [--set key=value ...] [--out folder] [--json] [-- prepare flags]
//
// With --out, stores and runs are kept: started again, the script leaves finished runs alone and goes on with the one that was cut.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals: prepareFlags } = parseArgs({
  allowPositionals: true,
  options: {
    log: { type: 'string', multiple: true },
    seeds: { type: 'string', default: '3' },
    staleness: { type: 'string', multiple: true, default: ['0', '1', '2'] },
    wire: { type: 'string', multiple: true, default: ['f32'] },
    set: { type: 'string', multiple: true, default: [] },
    out: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const folder = values.out ?? mkdtempSync(join(tmpdir(), 'turbogr-staleness-'));
mkdirSync(folder, { recursive: true });

function turbogr(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...words], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`turbogr ${words.join(' ')} ended with ${status}: ${stdout.slice(-2000)}${stderr}`);
  return stdout;
}

function ownLog() {
  const path = join(folder, 'small-log.csv');
  turbogr('synth', '--out', path, '--users', '1000', '--videos', '3000', '--mean-length', '60');
  return path;
}

/** Rows can be fetched ahead only if a step reads and changes a subset of them; few negatives keep that subset small. */
const NEEDED = [
  'loss.kind=sampled-softmax',
  'loss.negatives.count=128',
  'loss.negatives.pool=128',
  'optimizer.table=row-adagrad',
  'optimizer.tableLr=0.05',
];

function trainOnce(store, { staleness, wire }, seed) {
  const run = join(folder, `${basename(store)}-${staleness}-${wire}-${seed}`);
  const settings = [...NEEDED, ...values.set, `staleness=${staleness}`, `wire=${wire}`, `seed=${seed}`];
  if (!finished(run)) turbogr('train', store, '--run', run, ...settings.flatMap(s => ['--set', s]));
  const { test } = JSON.parse(readFileSync(join(run, 'report.json'), 'utf8'));
  const events = readFileSync(join(run, 'events.jsonl'), 'utf8').trim().split('\n');
  const stale = events
    .map(line => JSON.parse(line))
    .filter(event => event.kind === 'step' && event.stale !== undefined);
  const alpha = stale.length === 0 ? 0 : stale.reduce((sum, event) => sum + event.stale, 0) / stale.length;
  const metrics = test.metrics['model alone'] ?? test.metrics.model;
  return { hr: metrics['hr@10'].value, ndcg: metrics['ndcg@10'].value, alpha };
}

function finished(run) {
  const path = join(run, 'report.json');
  return existsSync(path) && JSON.parse(readFileSync(path, 'utf8')).reason !== 'interrupted';
}

const mean = list => list.reduce((sum, x) => sum + x, 0) / list.length;
const spread = list =>
  Math.sqrt(mean(list.map(x => (x - mean(list)) ** 2)) * (list.length / Math.max(1, list.length - 1)));

const ways = values.wire.flatMap(wire => values.staleness.map(staleness => ({ staleness, wire })));
const rows = [];
try {
  for (const log of values.log ?? [ownLog()]) {
    const store = join(folder, basename(log).replace(/\..*$/, ''));
    if (!existsSync(store)) turbogr('prepare', log, '--out', store, ...prepareFlags);
    for (const way of ways) {
      const found = Array.from({ length: Number(values.seeds) }, (_, seed) => trainOnce(store, way, seed + 1));
      const column = name => found.map(run => run[name]);
      rows.push({
        log: basename(store),
        ...way,
        seeds: found.length,
        hr_at_10: mean(column('hr')),
        hr_spread: spread(column('hr')),
        ndcg_at_10: mean(column('ndcg')),
        ndcg_spread: spread(column('ndcg')),
        alpha: mean(column('alpha')),
      });
      const { hr_at_10, hr_spread, ndcg_at_10, ndcg_spread, alpha } = rows.at(-1);
      console.error(
        `${basename(store)} staleness ${way.staleness}, wire ${way.wire}: hr@10 ${hr_at_10.toFixed(4)} ± ${hr_spread.toFixed(4)}, ` +
          `ndcg@10 ${ndcg_at_10.toFixed(4)} ± ${ndcg_spread.toFixed(4)}, alpha ${alpha.toFixed(3)}`,
      );
    }
  }
  if (values.json) console.log(JSON.stringify({ rows }));
} finally {
  if (values.out === undefined) rmSync(folder, { recursive: true, force: true });
}
