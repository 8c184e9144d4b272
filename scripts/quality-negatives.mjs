// Quality of the configurations of negatives: ML-1M (or another log), several seeds each, mean and spread of the test figures, next
// to the paper's Table 8. Every run has checkpoints, and a restarted script resumes, run by run, seed by seed. Validation only at
// the end: no epoch is chosen. Needs the built command line: npm run build.
//
//   node scripts/quality-negatives.mjs STORE [--out quality-negatives] [--seeds 3] [--only '64 real']
//     [--recipe ml-1m-hstu] [--set epochs=12 --set optimizer.schedule.kind=cosine]      settings of all runs
//   node scripts/quality-negatives.mjs STORE --table     prints the table of finished runs
//   node scripts/quality-negatives.mjs STORE --figures docs/negatives.json     figures of finished runs are also in this file: on
//                                                                             another machine only the missing ones are trained
//   node scripts/quality-negatives.mjs STORE --quick     one epoch of a small model: a smoke test

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

/** By name: settings of a run, and the paper's Table 8 figures (HR@100, HR@1000, NDCG@10, NDCG@200). */
const WAYS = {
  '128 real': { set: ['count=128'], paper: 'small .1020 .3174 .0114 .0331; large .0235 .3204 .0123 .0347' },
  '128 real, FP16': { set: ['count=128', 'storage=f16'] },
  '64 real': { set: ['count=64'] },
  '64, k = 2': {
    set: ['count=64', 'sharing.factor=2'],
    paper: 'small .1060 .3172 .0128 .0349; large .0238 .3136 .0123 .0341',
  },
  '64, k = 4': { set: ['count=64', 'sharing.factor=4'], paper: 'large .0257 .3183 .0134 .0360' },
  '32, k = 4': { set: ['count=32', 'sharing.factor=4'] },
  'pool of 1,024, 128 of it': { set: ['count=128', 'pool=1024'] },
};
const FIGURES = ['hr@10', 'hr@200', 'ndcg@10'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string', default: 'quality-negatives' },
    seeds: { type: 'string', default: '3' },
    recipe: { type: 'string', default: 'ml-1m-hstu' },
    set: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', multiple: true },
    quick: { type: 'boolean', default: false },
    table: { type: 'boolean', default: false },
    figures: { type: 'string' },
  },
});
const [store] = positionals;
if (store === undefined) fail('Name a store made by `turbogr prepare`: node scripts/quality-negatives.mjs STORE');
const names = values.only ?? Object.keys(WAYS);
for (const name of names) if (!(name in WAYS)) fail(`no way "${name}"; there are: ${Object.keys(WAYS).join('; ')}`);
const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => i + 1);

/** What all runs have in common, as a key of the file of figures. */
const setup = [basename(store), values.recipe, ...values.set].join(' ');
const stored = values.figures && existsSync(values.figures) ? JSON.parse(readFileSync(values.figures, 'utf8')) : {};

mkdirSync(values.out, { recursive: true });
if (!values.table) for (const seed of seeds) for (const name of names) train(name, seed);
const text = tableOf();
writeFileSync(join(values.out, 'table.md'), text);
process.stdout.write(text);

/** Seed by seed, so that the table fills evenly. Finished runs are skipped. */
function train(name, seed) {
  const run = runOf(name, seed);
  if (figuresOf(name, seed)) return;
  const settings = [
    `seed=${seed}`,
    'evaluation.every=1000000',
    ...values.set,
    ...WAYS[name].set.map(setting => `loss.negatives.${setting}`),
    ...(values.quick ? ['epochs=1', 'model.d=16', 'model.blocks=1', 'model.heads=1'] : []),
  ];
  const flags = settings.flatMap(setting => ['--set', setting]);
  const args = ['train', store, '--run', run, '--recipe', values.recipe, ...flags];
  console.error(`${name}, seed ${seed}: turbogr ${args.join(' ')}`);
  const { status } = spawnSync(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) fail(`it ended with status ${status}; start the script again to resume this run`);
}

function runOf(name, seed) {
  return join(values.out, `${name.replaceAll(/[^\w]+/g, '-')}-seed-${seed}`);
}

/** Test figures of a finished run, by name. */
function figuresOf(name, seed) {
  return stored[setup]?.[name]?.[seed]?.figures ?? readFigures(name, seed);
}

function readFigures(name, seed) {
  const path = join(runOf(name, seed), 'report.json');
  if (!existsSync(path)) return undefined;
  const { reason, test, digest } = JSON.parse(readFileSync(path, 'utf8'));
  if (reason === 'interrupted') return undefined;
  const figures = Object.fromEntries(FIGURES.map(figure => [figure, test.metrics.model[figure].value]));
  if (values.figures) {
    stored[setup] ??= {};
    stored[setup][name] ??= {};
    stored[setup][name][seed] = { figures, digest };
    writeFileSync(values.figures, `${JSON.stringify(stored, null, 2)}\n`);
  }
  return figures;
}

function tableOf() {
  const rows = names.map(name => {
    const found = seeds.map(seed => figuresOf(name, seed)).filter(figures => figures !== undefined);
    const cells = FIGURES.map(figure => meanAndSpread(found.map(figures => figures[figure])));
    return `| ${[name, ...cells, `${found.length} of ${seeds.length}`, WAYS[name].paper ?? ''].join(' | ')} |`;
  });
  const head = [
    'negatives',
    ...FIGURES.map(figure => figure.toUpperCase()),
    'seeds',
    'paper: HR@100 HR@1000 NDCG@10 NDCG@200',
  ];
  const lines = [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...rows];
  const [plain, half] = ['128 real', '128 real, FP16'].map(name => seeds.map(seed => figuresOf(name, seed)));
  const pairs = seeds.flatMap((_, i) => (plain[i] && half[i] ? [[plain[i], half[i]]] : []));
  if (pairs.length > 0) {
    const difference = figure => mean(pairs.map(([a, b]) => b[figure] - a[figure])).toFixed(5);
    lines.push('', `FP16 less f32, mean of ${pairs.length}: ${FIGURES.map(f => `${f} ${difference(f)}`).join(', ')}`);
  }
  return `${lines.join('\n')}\n`;
}

function meanAndSpread(numbers) {
  if (numbers.length === 0) return '';
  if (numbers.length === 1) return numbers[0].toFixed(4); // one seed has no spread
  const spread = Math.max(...numbers) - Math.min(...numbers);
  return `${mean(numbers).toFixed(4)} ± ${(spread / 2).toFixed(4)}`;
}

function mean(numbers) {
  return numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
}

function fail(message) {
  console.error(`quality-negatives: ${message}`);
  process.exit(1);
}
