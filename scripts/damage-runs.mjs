// Damages runs, stores, checkpoints and bundles, and uses them: every use must give the same results as before or be refused with a
// reason. Counts the outcomes; silent differences, raw errors, crashes and hangs are printed, and the exit status is 1.
//
//   npm run build && node scripts/damage-runs.mjs [--mutations 5000] [--seed 1] [--first 0]
//
// A fault is printed with its number: --first <number> --mutations 1, with the same --seed, reproduces it.
import { fork } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { exportBundle } from '../dist/jobs/bundle.js';
import { resume, synthesize, train } from '../dist/index.js';

const { values } = parseArgs({
  options: {
    mutations: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    first: { type: 'string', default: '0' },
  },
});
const HANGS_AFTER_MS = 60_000;
/** What is damaged in rotation: mostly runs. */
const KINDS = ['run', 'finished', 'run', 'finished', 'run', 'finished', 'bundle'];
const CHILD = fileURLToPath(new URL('damage/use-run.mjs', import.meta.url));

const CONFIG = {
  model: { d: 8, blocks: 1, maxLength: 12 },
  loss: { kind: 'full-softmax' },
  batch: { tokens: 32 },
  epochs: 3,
  threads: 1,
  evaluation: { cutoffs: [10] },
  checkpoint: { every: 3, keep: 3 },
};

/** An interrupted run, to be resumed; the same run when finished; its bundle. */
async function makeSoundThings(folder) {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 24, videos: 50, meanLength: 14, margin: false });
  const stop = new AbortController();
  const onEvent = event => {
    if (event.kind === 'checkpoint' && event.step >= 9) stop.abort();
  };
  const { reason } = await train({ data: log, run: join(folder, 'run'), config: CONFIG, signal: stop.signal, onEvent });
  if (reason !== 'interrupted') throw new Error(`the run should have been interrupted, but ended by ${reason}`);
  cpSync(join(folder, 'run'), join(folder, 'finished'), { recursive: true });
  await resume(join(folder, 'finished'));
  await exportBundle(join(folder, 'finished'), join(folder, 'bundle'));
}

/** A child process that uses damaged files, and is replaced when it dies or hangs. */
class User {
  #folder;
  #child;

  constructor(folder) {
    this.#folder = folder;
  }

  /** Results by use; a death or a hang is the result of all of them. */
  async use(kind, seed) {
    this.#child ??= await this.#start();
    return await new Promise(resolve => {
      let done = `seed ${seed}`;
      const child = this.#child;
      const timer = setTimeout(() => finish({ how: 'hang', what: `${HANGS_AFTER_MS / 1000} s` }), HANGS_AFTER_MS);
      const finish = (death, results = { all: death }) => {
        clearTimeout(timer);
        child.removeAllListeners();
        if (death) {
          child.kill('SIGKILL');
          this.#child = undefined;
        }
        resolve({ done, results });
      };
      child.on('exit', (code, signal) => finish({ how: 'died', what: String(signal ?? code) }));
      child.on('message', message => {
        done = message.started ?? done;
        if (message.results) finish(undefined, message.results);
      });
      child.send({ kind, seed });
    });
  }

  async #start() {
    const child = fork(CHILD, [this.#folder], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    await new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.once('exit', code => reject(new Error(`the undamaged run cannot be used: status ${code}`)));
    });
    return child;
  }

  end() {
    this.#child?.kill();
  }
}

const folder = mkdtempSync(join(tmpdir(), 'turbogr-damage-'));
const user = new User(folder);
const counts = { mutations: 0, refused: 0, harmless: 0, silent: 0, raw: 0, died: 0, hang: 0 };
const stop = new AbortController();
process.once('SIGINT', () => stop.abort()); // the counts so far are printed
try {
  await makeSoundThings(folder);
  for (; counts.mutations < Number(values.mutations) && !stop.signal.aborted; counts.mutations++) {
    const number = Number(values.first) + counts.mutations;
    const kind = KINDS[number % KINDS.length];
    const { done, results } = await user.use(kind, Number(values.seed) * 1_000_003 + number);
    const faults = Object.entries(results).filter(([, { how }]) => how !== 'same' && how !== 'refused');
    for (const [use, { how, what }] of faults) {
      counts[how]++;
      console.error(`${number} ${kind}/${done}: ${use} ${how}: ${what.slice(0, 600)}`);
    }
    if (faults.length > 0) continue;
    const refused = Object.values(results).some(({ how }) => how === 'refused');
    counts[refused ? 'refused' : 'harmless']++;
  }
} finally {
  user.end();
  rmSync(folder, { recursive: true, force: true });
}
console.log(JSON.stringify(counts));
process.exitCode = counts.silent + counts.raw + counts.died + counts.hang > 0 ? 1 : 0;
