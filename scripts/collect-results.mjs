// Collects the reports of finished runs into docs/results.json and the table of docs/results.md, so that no figure there
// is typed by hand. A row is known by its command and its split's fingerprint; a newer run replaces an older one.
//
//   node scripts/collect-results.mjs "MovieLens 1M, order_unstable" runs/ml-1m-hstu runs/ml-1m-sasrec ...
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resolveConfig } from '../dist/index.js';

const docs = fileURLToPath(new URL('../docs', import.meta.url));
const [data, ...runs] = process.argv.slice(2);
if (!data || runs.length === 0) {
  console.error('usage: node scripts/collect-results.mjs <name of the data> <run folder>...');
  process.exit(2);
}

const METRICS = ['hr@10', 'ndcg@10', 'hr@50', 'hr@200', 'ndcg@200', 'mrr'];
const jsonPath = join(docs, 'results.json');
const read = path => JSON.parse(readFileSync(path, 'utf8'));

/** `a.b=value` of every key in which a config differs from that of its recipe. */
function changes(config, recipe, path = '') {
  return Object.keys(config).flatMap(key => {
    const [mine, its, name] = [config[key], recipe?.[key], `${path}${key}`];
    if (mine !== null && typeof mine === 'object' && !Array.isArray(mine)) return changes(mine, its, `${name}.`);
    return JSON.stringify(mine) === JSON.stringify(its) ? [] : [`${name}=${mine}`];
  });
}

function rowOf(run) {
  const { config, initialWeights } = read(join(run, 'run.json'));
  const report = read(join(run, 'report.json'));
  const { seed: _named, ...decisive } = config;
  const changed = changes(decisive, resolveConfig({ recipe: config.recipe }));
  const { test } = report;
  const metrics = of => Object.fromEntries(METRICS.filter(m => of[m]).map(m => [m, of[m]]));
  return {
    data,
    recipe: config.recipe,
    changes: changed,
    ...(initialWeights && { initialWeights: initialWeights.sha256 }),
    command: [
      `turbogr train <store> --recipe ${config.recipe} --seed ${report.seed}`,
      ...changed.map(change => `--set ${change}`),
      ...(initialWeights ? ['--initial-weights <weights exported from the run of the recipe alone>'] : []),
    ].join(' '),
    fingerprint: test.fingerprint,
    exclude: test.exclude,
    items: test.items,
    seed: report.seed,
    threads: report.threads,
    seconds: Math.round(report.seconds),
    epochs: report.epoch,
    chosenEpoch: report.best ? report.best.epoch + 1 : report.epoch,
    digest: report.digest,
    model: metrics(test.metrics.model),
    popularity: metrics(test.metrics.popularity),
    markov: metrics(test.metrics['first-order Markov']),
  };
}

const known = existsSync(jsonPath) ? read(jsonPath).rows : [];
const byCommand = new Map([...known, ...runs.map(rowOf)].map(row => [`${row.command} ${row.fingerprint}`, row]));
const place = row => `${row.data} ${row.command}`;
const rows = [...byCommand.values()].sort((a, b) => (place(a) < place(b) ? -1 : 1));
writeFileSync(jsonPath, `${JSON.stringify({ rows }, null, 1)}\n`);

const figure = (metrics, name) => (metrics[name] ? metrics[name].value.toFixed(4).replace(/^0/, '') : '');
const lines = [
  `| data | recipe | ${METRICS.join(' | ')} | Markov hr@10 | epoch | seed | wall clock | digest |`,
  `|${'---|'.repeat(METRICS.length + 7)}`,
  ...rows.map(row =>
    [
      '',
      row.data,
      `\`${row.recipe}\`${row.changes.length > 0 ? `, ${row.initialWeights ? 'then' : 'with'} \`${row.changes.join(' ')}\`` : ''}`,
      ...METRICS.map(name => figure(row.model, name)),
      figure(row.markov, 'hr@10'),
      `${row.chosenEpoch} of ${row.epochs}`,
      row.seed,
      `${(row.seconds / 60).toFixed(1)} min`,
      `\`${row.digest.slice(0, 12)}\``,
      '',
    ]
      .join(' | ')
      .trim(),
  ),
];
const page = join(docs, 'results.md');
const text = readFileSync(page, 'utf8');
writeFileSync(page, text.replace(/(<!-- table -->)[\s\S]*(<!-- end -->)/, `$1\n${lines.join('\n')}\n$2`));
