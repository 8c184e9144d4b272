// Kills training at individual file-system calls and resumes it: the final weights must equal those of the uninterrupted run. Every
// call that changes a file (openat for writing, write, fsync, rename, unlink, mkdir, link) is a kill point. strace (Linux; package
// "strace") delivers SIGKILL on entering the n-th call of a kind, so every point is hit exactly.
//
//   npm run build && node scripts/kill-at-syscalls.mjs [--runs 30] [--seed 1]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '30' }, seed: { type: 'string', default: '1' } },
});
if (spawnSync('strace', ['--version']).status !== 0) {
  console.error(
    'kill-at-syscalls: strace was not found. Install it (Debian: apt-get install strace); it needs ptrace.',
  );
  process.exit(2);
}

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const CALLS = ['rename', 'fsync', 'unlink', 'rmdir', 'mkdir', 'pwrite64', 'write', 'openat', 'utimensat'];
const MOST = {
  rename: 40,
  fsync: 60,
  unlink: 30,
  rmdir: 10,
  mkdir: 12,
  pwrite64: 120,
  write: 200,
  openat: 900,
  utimensat: 6,
};
const folder = mkdtempSync(join(tmpdir(), 'turbogr-kills-'));
const keys = [
  'model.d=16',
  'model.blocks=1',
  'model.maxLength=50',
  'batch.tokens=1024',
  'epochs=3',
  'checkpoint.every=3',
];
const settings = keys.flatMap(key => ['--set', key]);

const turbogr = (...args) => ({ command: process.execPath, args: [MAIN, ...args] });
const train = run => turbogr('train', join(folder, 'store'), '--run', run, '--threads', '1', ...settings);

function execute({ command, args }, expected) {
  const { status, signal, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (expected.includes(signal ?? status)) return signal ?? status;
  throw new Error(`${command} ${args.join(' ')}\nended with ${signal ?? status}\n${stderr}`);
}

/** The lines of the report with the digest and the number of steps. */
const weights = run =>
  readFileSync(join(run, 'report.json'), 'utf8')
    .match(/^ {2}"(digest|step)": .*$/gm)
    .join();

/** Reproducible random numbers from a seed (Park and Miller). */
let state = Number(values.seed);
const below = limit => (state = (state * 48271) % 2147483647) % limit;

try {
  execute(
    turbogr(
      'synth',
      '--out',
      join(folder, 'log.csv'),
      '--users',
      '80',
      '--videos',
      '100',
      '--mean-length',
      '30',
      '--no-margin',
    ),
    [0],
  );
  execute(turbogr('prepare', join(folder, 'log.csv'), '--out', join(folder, 'store')), [0]);
  const calm = join(folder, 'calm');
  execute(train(calm), [0]);
  const wanted = weights(calm);
  const tally = { runs: 0, kills: 0 };
  for (; tally.runs < Number(values.runs); tally.runs++) {
    const run = join(folder, `run-${tally.runs}`);
    for (let kill = 0; kill < 3; kill++) {
      const call = CALLS[below(CALLS.length)];
      const inject = `inject=${call}:signal=KILL:when=${1 + below(MOST[call])}`;
      const { command, args } = train(run);
      const traced = {
        command: 'strace',
        args: ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', inject, command, ...args],
      };
      if (execute(traced, [0, 'SIGKILL', 137]) !== 0) tally.kills++;
    }
    execute(train(run), [0]);
    const left = readdirSync(run).filter(name => name.endsWith('.tmp') || name === 'lock');
    if (weights(run) !== wanted) throw new Error(`${run}: ${weights(run)}, expected ${wanted}`);
    if (left.length > 0) throw new Error(`${run}: left behind ${left.join(', ')}`);
    rmSync(run, { recursive: true });
    process.stdout.write(`\r${tally.runs + 1} runs, ${tally.kills} kills, every digest right`);
  }
  process.stdout.write('\n');
} finally {
  if (existsSync(folder)) rmSync(folder, { recursive: true });
}
