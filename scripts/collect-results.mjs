// Collects the reports of finished runs into docs/results.json and the tables of docs/results.md, so that no figure is typed by
// hand. A row is identified by its command and its split's fingerprint; a newer run replaces an older one. Runs without a recipe,
// with settings chosen from the log, have a separate table with the baselines.
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

const METRICS = ['hr@1', 'hr@10', 'ndcg@10', 'hr@50', 'hr@200', 'ndcg@200', 'mrr'];
const jsonPath = join(docs, 'results.json');
const read = path => JSON.parse(readFileSync(path, 'utf8'));

/** `a.b=value` for every key in which a config differs from its recipe. */
function changes(config, recipe, path = '') {
  return Object.keys(config).flatMap(key => {
    const [mine, its, name] = [config[key], recipe?.[key], `${path}${key}`];
    if (mine !== null && typeof mine === 'object' && !Array.isArray(mine)) return changes(mine, its, `${name}.`);
    return JSON.stringify(mine) === JSON.stringify(its) ? [] : [`${name}=${mine}`];
  });
}

/** The run that `turbogr refit` trained again, on the same data; an update's parent has older data. */
function refitted(run, { parent, fingerprint }) {
  if (!parent) return undefined;
  const folder = [join(run, parent.place.relative), parent.place.absolute].find(existsSync);
  return folder && read(join(folder, 'run.json')).fingerprint === fingerprint ? folder : undefined;
}

/** What a run was trained with: the command, and how its config differs from the recipe's. */
function settingsOf(run) {
  const description = read(join(run, 'run.json'));
  const parent = refitted(run, description);
  if (parent) {
    const { command, changed } = settingsOf(parent);
    return { command: `turbogr refit <run of ${command}>`, changed };
  }
  const { config, initialWeights } = description;
  const { seed, threads: _irrelevant, ...decisive } = config;
  const changed = config.recipe ? changes(decisive, resolveConfig({ recipe: config.recipe })) : [];
  const command = [
    `turbogr train <store>${config.recipe ? ` --recipe ${config.recipe}` : ''} --seed ${seed}`,
    ...changed.map(change => `--set ${change}`),
    ...(initialWeights ? ['--initial-weights <weights exported from the run of the recipe alone>'] : []),
  ].join(' ');
  return { command, changed };
}

function rowOf(run) {
  const { config, initialWeights } = read(join(run, 'run.json'));
  const { command, changed } = settingsOf(run);
  const report = read(join(run, 'report.json'));
  const { test } = report;
  const metrics = of => Object.fromEntries(METRICS.filter(m => of[m]).map(m => [m, of[m]]));
  return {
    data,
    recipe: config.recipe ?? null,
    changes: changed,
    ...(initialWeights && { initialWeights: initialWeights.sha256 }),
    command,
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
    ...(test.metrics.recency && { recency: metrics(test.metrics.recency) }),
    ...(test.metrics.blend && { blend: metrics(test.metrics.blend) }),
    ...(test.metrics['model alone'] && { alone: metrics(test.metrics['model alone']) }),
    ...(test.selfFirst !== undefined && { selfFirst: test.selfFirst, repeatedTargets: test.repeatedTargets }),
    ...(report.chosenOn === 'test' && { chosenOn: 'test' }),
    ...(config.recipe ? {} : { settings: config }),
  };
}

const known = existsSync(jsonPath) ? read(jsonPath).rows : [];
const byCommand = new Map([...known, ...runs.map(rowOf)].map(row => [`${row.command} ${row.fingerprint}`, row]));
const place = row => `${row.data} ${row.command}`;
const rows = [...byCommand.values()].sort((a, b) => (place(a) < place(b) ? -1 : 1));
writeFileSync(jsonPath, `${JSON.stringify({ rows }, null, 1)}\n`);

const figure = (metrics, name) => (metrics[name] ? metrics[name].value.toFixed(4).replace(/^0/, '') : '');
/** The recipes' table keeps its columns. */
const COLUMNS = METRICS.filter(name => name !== 'hr@1');
const minutes = row => `${(row.seconds / 60).toFixed(1)} min`;
const tableOf = (head, body) =>
  [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...body.map(cells => `| ${cells.join(' | ')} |`)].join(
    '\n',
  );

/** The recipe and what was changed of it. */
const named = row =>
  `\`${row.recipe}\`${row.command.startsWith('turbogr refit') ? ', then `turbogr refit`' : ''}${row.changes.length > 0 ? `, ${row.initialWeights ? 'then' : 'with'} \`${row.changes.join(' ')}\`` : ''}` +
  (row.chosenOn === 'test' ? ' (epoch chosen on test: not held out)' : '');

const recipes = tableOf(
  ['data', 'recipe', ...COLUMNS, 'Markov hr@10', 'epoch', 'seed', 'wall clock', 'digest'],
  rows
    .filter(row => row.recipe)
    .map(row => [
      row.data,
      named(row),
      ...COLUMNS.map(name => figure(row.model, name)),
      figure(row.markov, 'hr@10'),
      `${row.chosenEpoch} of ${row.epochs}`,
      row.seed,
      minutes(row),
      `\`${row.digest.slice(0, 12)}\``,
    ]),
);

/** Groups of rows that differ only in the seed: mean, lowest and highest. */
const bySetting = new Map();
for (const row of rows.filter(({ recipe }) => recipe)) {
  const setting = `${row.command.replace(/ --seed \d+/, '')} ${row.fingerprint}`;
  bySetting.set(setting, [...(bySetting.get(setting) ?? []), row]);
}
const spread = (group, name) => {
  const values = group.map(row => row.model[name].value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const text = value => value.toFixed(4).replace(/^0/, '');
  return `${text(values.reduce((sum, value) => sum + value, 0) / values.length)} (${text(low)} to ${text(high)})`;
};
const seeds = tableOf(
  ['data', 'recipe', 'seeds', 'hr@10', 'ndcg@10', 'hr@50', 'hr@200'],
  [...bySetting.values()]
    .filter(group => group.length > 1)
    .map(group => [
      group[0].data,
      named(group[0]),
      group.map(row => row.seed).join(', '),
      ...['hr@10', 'ndcg@10', 'hr@50', 'hr@200'].map(name => spread(group, name)),
    ]),
);

const RANKERS = ['model', 'alone', 'popularity', 'markov', 'recency', 'blend'];
const triple = metrics => ['hr@1', 'hr@10', 'ndcg@10'].map(name => figure(metrics ?? {}, name)).join(' / ');
/** The model's ndcg@10 relative to the best of popularity, Markov and recency. */
const lead = row => {
  const best = Math.max(...['popularity', 'markov', 'recency'].map(name => row[name]['ndcg@10'].value));
  return `${(100 * (row.model['ndcg@10'].value / best - 1)).toFixed(0)} %`;
};
const defaults = tableOf(
  [
    'data',
    'left out',
    'model',
    'model alone',
    'popularity',
    'Markov',
    'recency',
    'blend',
    'ndcg@10 above the best',
    'epoch',
    'wall clock',
    'digest',
  ],
  rows
    .filter(row => !row.recipe)
    .map(row => [
      row.data,
      row.exclude,
      ...RANKERS.map(name => triple(row[name])),
      lead(row),
      `${row.chosenEpoch} of ${row.epochs}`,
      minutes(row),
      `\`${row.digest.slice(0, 12)}\``,
    ]),
);

const page = join(docs, 'results.md');
const put = (text, name, content) =>
  text.replace(new RegExp(`(<!-- ${name} -->)[\\s\\S]*?(<!-- end -->)`), `$1\n${content}\n$2`);
const tables = { table: recipes, defaults, seeds };
const filled = Object.entries(tables).reduce(
  (text, [name, content]) => put(text, name, content),
  readFileSync(page, 'utf8'),
);
writeFileSync(page, filled);
