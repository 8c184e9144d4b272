// How every command in a code block of the documentation is covered: it is run by the test next to this file, or by another one, or
// there is a reason why it cannot be run here. A missing command fails the test. `npx ` is omitted.

export interface Shown {
  /** Added so that it ends soon or does not meet another run; never changes which flags of the document are used. */
  plus?: string;
  /** A server: stopped as soon as its output says this. */
  until?: RegExp;
  /** File that runs it, and a text of that file that does. */
  elsewhere?: readonly [file: string, text: string];
  /** Why nothing here can run it. */
  not?: string;
}

const QUICK = '--set maxSteps=2';
const NEEDS_ML1M = 'needs MovieLens 1M, which may not be redistributed';
const NEEDS_PACKAGES = 'needs the package log, which is no part of the project';
const CI = ['.ci/run', 'try-install.mjs'] as const;

export const SHOWN: Readonly<Record<string, Shown>> = {
  // README, guide
  'npm install turbogr': { elsewhere: CI },
  'turbogr demo': { elsewhere: ['.github/workflows/ci.yml', 'npx turbogr demo'] },
  'turbogr train events.csv --user user_id --item item_id --time timestamp': { plus: '--epochs 1 --size tiny' },
  'turbogr recommend runs/events-hstu --user 4711': {},
  'turbogr train events.csv --run runs/longer --epochs 40': { plus: QUICK },
  'turbogr tune runs/events-hstu/store': { elsewhere: ['tests/train/tune.test.ts', 'tune('] },
  'turbogr serve runs/events-hstu': { plus: '--port 0', until: /serves/ },
  'turbogr doctor': { elsewhere: ['tests/bench/doctor.test.ts', 'doctor'] },
  // recipes
  'turbogr compare runs/events-hstu runs/longer --html comparison.html': {},
  'turbogr train events.csv --run runs/again --seed 1': { plus: QUICK },
  'turbogr resume runs/events-hstu': {},
  'turbogr train events.csv --run runs/fuxi --set model.kind=fuxi': { plus: QUICK },
  'turbogr train events.csv --run runs/priors --set priors=auto': { plus: QUICK },
  'turbogr train events.csv --run runs/watched --tensorboard --metrics :9090': {
    elsewhere: ['tests/ui/observers.test.ts', "'--metrics', ':0', '--tensorboard'"],
  },
  // installing
  'npm ci': { elsewhere: ['.ci/run', 'npm ci'] },
  'npm start': { not: 'builds the core and trains for a minute; CI runs the same demo from an install' },
  'npm test': { elsewhere: ['.ci/run', 'npm test'] },
  'node scripts/try-install.mjs': { elsewhere: CI },
  'node scripts/try-install.mjs --clone': { not: 'two minutes, and a clone of what is committed only' },
  // clusters
  'turbogr launch -n 4 ranks': { elsewhere: ['tests/cluster/mpi.ts', 'launch'] },
  'turbogr launch -n 4 train store --set batch.lanes=8': { elsewhere: ['tests/cluster/mpi.ts', 'launch'] },
  'turbogr launch -n 2 train store --set batch.lanes=2 --trace trace.json': {
    elsewhere: ['tests/cluster/trace.test.ts', "'--trace'"],
  },
  'turbogr launch -n 4 --hosts a:2,b:2 train store --set batch.lanes=8': { not: 'needs two hosts' },
  'turbogr plan store --hosts 4 --cores 32 --ranks-per-host 8 --gbit 25 --memory 256': {
    elsewhere: ['tests/plan/plan.test.ts', 'plan'],
  },
  'mpirun -n 4 npx turbogr train store --set batch.lanes=8': {
    not: 'needs an MPI; tests/cluster starts its launchers',
  },
  // features
  "turbogr train events.csv --items items.csv --set 'model.sideFeatures=[category, price]'": {
    plus: `--run runs/features ${QUICK}`,
  },
  'turbogr recommend runs/events-hstu --user 4711 --filter \'{"category": "comedy", "year": {"gte": 1990, "lt": 2000}}\'':
    { plus: '--items items.csv' },
  'turbogr recommend runs/events-hstu --user 4711 --allow 12,48,7 --deny 48': {},
  // serving
  'turbogr serve runs/events-hstu --items items.csv --events served': { plus: '--port 0', until: /serves/ },
  'curl -s localhost:8080/v1/recommend -H \'content-type: application/json\' -d \'{"user": 3, "k": 5}\'': {
    elsewhere: ['tests/server/routes.test.ts', '/v1/recommend'],
  },
  'turbogr recommend runs/events-hstu --user 3 --items items.csv --filter \'{"genre": "comedy"}\'': {},
  'turbogr recommend runs/events-hstu --all --out recs.parquet': {},
  'turbogr similar runs/events-hstu 2858 --items items.csv': {},
  'turbogr embed runs/events-hstu --out vectors.safetensors --of both': {},
  // training
  'turbogr config --recipes': {},
  'turbogr config --recipe ml-1m-hstu --set model.d=64': {},
  'turbogr config --schema > turbogr.schema.json': {},
  'turbogr train store --recipe ml-1m-hstu --seed 7': { plus: `--run runs/recipe ${QUICK}` },
  'turbogr train store --config examples/run.yaml': { plus: `--run runs/yaml ${QUICK}` },
  'turbogr config --explain store': {},
  'turbogr prepare ml-1m.csv.gz --time order_unstable --catalogue 3883 --out ml-1m': { not: NEEDS_ML1M },
  // negatives
  'turbogr prepare ml-1m.csv.gz --time order_stable --catalogue 3883 --out ml-1m': { not: NEEDS_ML1M },
  'node scripts/quality-negatives.mjs ml-1m --set epochs=12 --set optimizer.schedule.kind=cosine --set optimizer.lr=2e-3 --set batch.users=64':
    { not: NEEDS_ML1M },
  'turbogr prepare package-log.csv.gz --out package': { not: NEEDS_PACKAGES },
  'node scripts/quality-negatives.mjs package --out quality-package --recipe package-log-hstu --set loss.kind=sampled-softmax --set optimizer.schedule.kind=cosine --figures docs/negatives.json':
    { not: NEEDS_PACKAGES },
  'turbogr train ml-1m --recipe ml-1m-hstu': { not: NEEDS_ML1M },
  // updating
  'turbogr refit runs/events-hstu': { elsewhere: ['tests/train/refit.test.ts', 'refit('] },
  'turbogr update runs/events-hstu newer.csv': { elsewhere: ['tests/chaos/update.test.ts', 'update('] },
  'turbogr update runs/events-hstu-update-1 day-2.csv': { elsewhere: ['tests/chaos/update.test.ts', 'update('] },
  'turbogr train events.csv --epochs 40': { not: 'extends a finished run by its own number of epochs: minutes' },
  // watching
  'turbogr ui': { plus: '--port 0', until: /shows the runs/ },
  'turbogr ui runs/events-hstu': { plus: '--port 0', until: /shows the runs/ },
  'turbogr train events.csv --ui': { elsewhere: ['tests/ui/observers.test.ts', "'--ui', '0'"] },
  'turbogr compare runs/a runs/b --html comparison.html': {
    elsewhere: ['tests/view/reports.test.ts', "'compare', 'run'"],
  },
  'turbogr train events.csv --tensorboard': { elsewhere: ['tests/ui/observers.test.ts', "'--tensorboard'"] },
  'turbogr train events.csv --metrics :9090': { elsewhere: ['tests/ui/observers.test.ts', "'--metrics'"] },
  // results
  'turbogr prepare ml-1m-times.csv.gz --user user_id --item item_id --time time_s --catalogue 3883 --out ml-1m-times': {
    not: NEEDS_ML1M,
  },
  'turbogr train ml-1m-times --recipe ml-1m-best': { not: NEEDS_ML1M },
  'turbogr train ml-1m --recipe ml-1m-hstu --run runs/ml-1m-hstu': { not: NEEDS_ML1M },
  'node scripts/collect-results.mjs "MovieLens 1M, order_unstable" runs/ml-1m-hstu': { not: NEEDS_ML1M },
  'turbogr export runs/ml-1m-hstu-large --out large.safetensors': { not: NEEDS_ML1M },
  'turbogr train ml-1m --recipe ml-1m-hstu-large --initial-weights large.safetensors --run runs/large-full --set loss.kind=full-softmax --set optimizer.schedule.kind=cosine --set epochs=15':
    { not: NEEDS_ML1M },
  'turbogr bench scaling --svg docs/scaling.svg': {
    not: 'a quarter of an hour; tests/bench/scaling.test.ts runs a small form',
  },
};
