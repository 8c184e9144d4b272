// Trains the rows of docs/results.md one after the other: recipes x protocols x seeds on MovieLens 1M. Finished rows are skipped and
// an interrupted one is resumed, so it may be stopped at any time.
//
//   node scripts/quality-table.mjs --list                        # all rows, and which are finished
//   node scripts/quality-table.mjs --only hstu --seeds 1         # a subset
//   node scripts/quality-table.mjs --collect                     # finished rows into docs/results.{md,json}
//
// Protocols: `ours` trains on all but the last two events and chooses the epoch on the second-last; `published` trains on all but
// the last and reports the best epoch on it, as the published tables do: its figures are not held out. `refit` trains a run of
// `ours` again on all but the last event, with the epochs that it chose.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values: options } = parseArgs({
  options: {
    data: { type: 'string', default: join(root, '../shared/data') },
    out: { type: 'string', default: 'runs/quality' },
    only: { type: 'string', default: '' },
    seeds: { type: 'string', default: '1,2,3' },
    threads: { type: 'string' },
    list: { type: 'boolean', default: false },
    collect: { type: 'boolean', default: false },
  },
});

const DATA = [
  {
    id: 'times',
    name: 'MovieLens 1M, time_s (times 70 % exact, the rest interpolated)',
    file: 'ml-1m-times.csv.gz',
    columns: ['--user', 'user_id', '--item', 'item_id', '--time', 'time_s'],
  },
  {
    id: 'unstable',
    name: 'MovieLens 1M, order_unstable',
    file: 'ml-1m.csv.gz',
    columns: ['--time', 'order_unstable'],
  },
];
const RECIPES = ['ml-1m-hstu', 'ml-1m-hstu-large', 'ml-1m-fuxi', 'ml-1m-sasrec-meta'];
/** No recipe of a published row, so not in its protocol. */
const BEST = 'ml-1m-best';
const PROTOCOLS = { published: ['--set', 'trainOn=train+validation', '--set', 'evaluation.on=test'], ours: [] };

const kinds = [
  ...Object.keys(PROTOCOLS).flatMap(protocol => RECIPES.map(recipe => ({ recipe, protocol }))),
  { recipe: BEST, protocol: 'ours' },
  { recipe: BEST, protocol: 'refit' },
];
const rows = options.seeds.split(',').flatMap(seed =>
  DATA.flatMap(data =>
    kinds.map(({ recipe, protocol }) => {
      const runOf = of => join(options.out, `${data.id}-${recipe}-${of}-seed-${seed}`);
      const run = runOf(protocol);
      return { name: basename(run), data, protocol, recipe, seed, run, refitOf: runOf('ours') };
    }),
  ),
);
const chosen = rows.filter(({ name }) => name.includes(options.only));

function isFinished({ run }) {
  const report = join(run, 'report.json');
  return existsSync(report) && JSON.parse(readFileSync(report, 'utf8')).reason !== 'interrupted';
}

/** Also exits if the command was stopped or failed. */
function turbogr(args) {
  const { status, signal } = spawnSync(process.execPath, [join(root, 'dist/cli/main.js'), ...args], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? (signal === 'SIGINT' ? 130 : 1));
}

function storeOf({ id, file, columns }) {
  const store = join(options.out, `store-${id}`);
  if (!existsSync(join(store, 'index.json'))) {
    turbogr(['prepare', join(options.data, file), ...columns, '--catalogue', '3883', '--out', store]);
  }
  return store;
}

if (options.list) {
  for (const row of chosen) console.log(`${isFinished(row) ? 'finished' : '        '}  ${row.name}`);
} else if (options.collect) {
  for (const { name } of DATA) {
    const runs = chosen.filter(row => row.data.name === name && isFinished(row)).map(({ run }) => run);
    if (runs.length === 0) continue;
    const script = join(root, 'scripts/collect-results.mjs');
    const { status } = spawnSync(process.execPath, [script, name, ...runs], { stdio: 'inherit' });
    if (status !== 0) process.exit(status ?? 1);
  }
} else {
  mkdirSync(options.out, { recursive: true });
  const threads = options.threads === undefined ? [] : ['--threads', options.threads];
  for (const row of chosen) {
    if (isFinished(row)) continue;
    const { recipe, seed, run, data, protocol, refitOf } = row;
    if (protocol === 'refit') {
      turbogr(['refit', refitOf, '--run', run]);
      continue;
    }
    turbogr([
      'train',
      storeOf(data),
      '--recipe',
      recipe,
      '--seed',
      seed,
      '--run',
      run,
      ...threads,
      ...PROTOCOLS[protocol],
    ]);
  }
}
