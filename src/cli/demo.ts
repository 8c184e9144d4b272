// `turbogr demo`: everything on a generated log, in about a minute: generate, prepare, train, evaluate, recommend. All output is
// in one folder, which is emptied first if an earlier demo created it.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { defineConfig } from '../config/resolve.js';
import { prepare } from '../data/prepare/prepare.js';
import { synthesize } from '../data/synth/synthesize.js';
import { readEvents } from '../train/event-log.js';
import { openRecommender } from '../jobs/recommend.js';
import { train } from '../jobs/train.js';
import { makeFolder } from '../util/atomic-file.js';
import { UserError } from '../util/errors.js';
import { formatCount } from '../util/terminal.js';
import { wholeNumber } from '../util/number-flags.js';
import { curve } from '../util/curve.js';
import { watchRun } from './watch-run.js';

const LOG = { users: 2000, videos: 1000, meanLength: 100, seed: 1 };

const CONFIG = defineConfig({
  recipe: 'plain',
  model: { kind: 'hstu', d: 64, blocks: 2, heads: 2, maxLength: 200, dropout: 0.2 },
  optimizer: { lr: 3e-3, schedule: { kind: 'cosine', warmup: 20, floor: 0.05 } },
  batch: { tokens: 4096 },
  epochs: 20,
  evaluation: { cutoffs: [1, 5, 10, 50] },
  priors: 'auto',
});

/** Users shown at the end. */
const SHOWN = 4;

export function demoCommand() {
  return new Command('demo')
    .description('generate a log, prepare it, train a small HSTU, evaluate, recommend: about a minute')
    .option('--folder <folder>', 'output folder; that of an earlier demo is emptied first', join('runs', 'demo'))
    .option('--epochs <count>', 'epochs to train', wholeNumber, CONFIG.epochs)
    .option('--threads <count>', 'worker threads; does not affect results', wholeNumber)
    .action(async ({ folder, epochs, threads }) => {
      const say = (text: string) => process.stdout.write(`${text}\n`);
      const [log, store, run] = [join(folder, 'log.csv'), join(folder, 'store'), join(folder, 'run')];
      emptyOwnFolder(folder);

      say(`1. A synthetic log: ${log}`);
      const { events, users, videos, margin } = await synthesize({ out: log, ...LOG });
      say(`   ${formatCount(events)} events of ${formatCount(users)} users on ${formatCount(videos)} videos`);
      if (margin) {
        say(
          `   HR@10 to expect: popularity ${margin.popularity.toFixed(3)}, first-order Markov ${margin.markov.toFixed(3)};`,
        );
        say(`   the oracle, which knows the true distribution, reaches ${margin.oracle.toFixed(3)}`);
      }

      say(`\n2. Prepared: ${store}`);
      const prepared = await prepare({ files: [log], out: store });
      const { train: pairs, validation, test } = prepared.split;
      say(
        `   ${formatCount(pairs)} events to learn from; of every user the last is kept for the test, the one before for`,
      );
      say(`   choosing the epoch (${formatCount(validation)} and ${formatCount(test)} events)`);

      say(`\n3. Training: ${run}`);
      const config = [CONFIG, { epochs, ...(threads && { threads }) }];
      const report = await watchRun(false, watch => train({ data: store, config, run, ...watch }));
      if (report.reason === 'interrupted') return;

      const logged = readEvents(join(run, 'events.jsonl'));
      const losses = logged.filter(event => event.kind === 'epoch').map(event => event.loss);
      const values = logged.filter(event => event.kind === 'validation').map(event => event.value);
      say(`\n4. How it learned\n${curve({ title: 'loss by epoch', values: losses })}`);
      say(curve({ title: `validation ${report.metric} by epoch`, values }));

      say('\n5. Recommendations (the true next event is held out; * marks it where it was found)');
      await showUsers(run, say);
      say('\nGo on:');
      for (const next of [`recommend ${run} --user 0`, `evaluate ${run}`, 'train <your log>.csv']) {
        say(`  npx turbogr ${next}`);
      }
    });
}

/** Marks a folder of a demo: no other folder is ever emptied. */
const MARKER = '.turbogr-demo';

export function emptyOwnFolder(folder: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0 && !existsSync(join(folder, MARKER))) {
    throw new UserError(
      'not-a-demo',
      `${folder} contains files that are not from a demo, and the demo would remove them`,
      'Choose another folder with --folder, or remove this one yourself.',
    );
  }
  rmSync(folder, { recursive: true, force: true });
  makeFolder(folder);
  writeFileSync(join(folder, MARKER), '');
}

async function showUsers(run: string, say: (text: string) => void): Promise<void> {
  using recommender = openRecommender(run);
  for (let user = 0; user < SHOWN; user++) {
    const history = recommender.historyOf(user);
    const next = String(history.pop()?.item);
    const top = await recommender.recommend(history, { k: 8 });
    const recent = history.slice(-6).map(event => event.item);
    say(
      `   user ${user}  … ${recent.join(' ')}  →  ${top.map(({ item }) => (item === next ? `*${item}` : item)).join(' ')}`,
    );
  }
}
