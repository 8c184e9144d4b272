// Collects the reports of finished runs into docs/results.json and the table of docs/results.md, so that no figure there
// is typed by hand. A row is known by its command and its split's fingerprint; a newer run replaces an older one.
//
//   node scripts/collect-results.mjs "MovieLens 1M, order_unstable" runs/ml-1m-hstu runs/ml-1m-sasrec ...
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const docs = fileURLToPath(new URL('../docs', import.meta.url));
const [data, ...runs] = process.argv.slice(2);
if (!data || runs.length === 0) {
  console.error('usage: node scripts/collect-results.mjs <name of the data> <run folder>...');
  process.exit(2);
}

const METRICS = ['hr@10', 'ndcg@10', 'hr@50', 'hr@200', 'ndcg@200', 'mrr'];
const jsonPath = join(docs, 'results.json');
const read = path => JSON.parse(readFileSync(path, 'utf8'));

/** The flags of a run that starts from another's weights and learns from the validation events too. */
function refitFlags({ trainOn, epochs, optimizer }) {
  const keys = [`trainOn=${trainOn}`, `epochs=${epochs}`, `optimizer.schedule.kind=${optimizer.schedule.kind}`];
  return `${keys.map(key => ` --set ${key}`).join('')} --initial-weights <exported weights>`;
}

function rowOf(run) {
  const { config, initialWeights } = read(join(run, 'run.json'));
  const report = read(join(run, 'report.json'));
  const { test } = report;
  const metrics = of => Object.fromEntries(METRICS.filter(m => of[m]).map(m => [m, of[m]]));
  return {
    data,
    recipe: config.recipe,
    ...(initialWeights && { refit: report.epoch }),
    command: `turbogr train <store> --recipe ${config.recipe} --seed ${report.seed}${initialWeights ? refitFlags(config) : ''}`,
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
const rows = new Map([...known, ...runs.map(rowOf)].map(row => [`${row.command} ${row.fingerprint}`, row]));
writeFileSync(jsonPath, `${JSON.stringify({ rows: [...rows.values()] }, null, 1)}\n`);

const figure = (metrics, name) => (metrics[name] ? metrics[name].value.toFixed(4).replace(/^0/, '') : '');
const lines = [
  `| data | recipe | ${METRICS.join(' | ')} | Markov hr@10 | epoch | seed | wall clock | digest |`,
  `|${'---|'.repeat(METRICS.length + 7)}`,
  ...[...rows.values()].map(row =>
    [
      '',
      row.data,
      `\`${row.recipe}\`${row.refit ? `, then ${row.refit} epochs with validation` : ''}`,
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
