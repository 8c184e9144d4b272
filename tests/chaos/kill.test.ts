// kill -9 at random moments and in the middle of checkpoint writes, then resume: the final weights equal those of an uninterrupted
// run. Runs the built command line, as a user would.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { Random } from '../../src/util/random.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-chaos-'));
const store = join(folder, 'store');
const CONFIG = [
  'model.d=16',
  'model.blocks=1',
  'batch.tokens=1024',
  'epochs=4',
  'checkpoint.every=3',
  'model.maxLength=50',
];
const random = new Random(Date.now(), 'chaos');

beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build:ts`);
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 120, videos: 200, meanLength: 40, margin: false });
  await prepare({ files: [log], out: store });
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

function start(...args: string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
}

function startTraining(run: string, more: readonly string[] = []): ChildProcess {
  const settings = [...CONFIG, ...more].flatMap(key => ['--set', key]);
  return start('train', store, '--run', run, '--threads', '1', ...settings);
}

/** Waits for the end; gives the exit code, or null when it was killed. */
async function ended(child: ChildProcess): Promise<number | null> {
  let errors = '';
  child.stdout?.resume();
  child.stderr?.on('data', chunk => {
    errors += String(chunk);
  });
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  if (code !== 0 && code !== null) throw new Error(`exit ${code}: ${errors}`);
  return code;
}

/** The lines of the report with the digest and the number of steps. */
function finalWeights(run: string): string[] {
  return readFileSync(join(run, 'report.json'), 'utf8').match(/^ {2}"(digest|step)": .*$/gm) ?? [];
}

/** Resolves as soon as a checkpoint is being written, or the child has ended. */
async function duringCheckpoint(run: string, child: ChildProcess): Promise<void> {
  const checkpoints = join(run, 'checkpoints');
  const writing = () => existsSync(checkpoints) && readdirSync(checkpoints).some(name => name.endsWith('.tmp'));
  while (child.exitCode === null && !writing()) await sleep(1);
}

test.each([
  { lanes: 1, attempts: 6 },
  { lanes: 8, attempts: 4 },
])(
  'killed $attempts times, a run of $lanes lanes ends with the weights of the undisturbed one',
  async ({ lanes, attempts }) => {
    const batch = [`batch.tokens=${1024 / lanes}`, `batch.lanes=${lanes}`];
    const calm = join(folder, `calm-${lanes}`);
    expect(await ended(startTraining(calm, batch))).toBe(0);
    const wanted = finalWeights(calm);
    expect(wanted).toHaveLength(2);

    const chaotic = join(folder, `chaotic-${lanes}`);
    let kills = 0;
    for (let attempt = 0; attempt < attempts; attempt++) {
      // The first attempts are killed before there is a run to resume: `train` begins or continues it, whichever it is.
      const child = startTraining(chaotic, batch);
      const end = ended(child);
      if (attempt % 2 === 0) await duringCheckpoint(chaotic, child);
      await sleep(random.below(attempt % 2 === 0 ? 5 : 400));
      child.kill('SIGKILL');
      if ((await end) === null) kills++;
    }
    expect(kills).toBeGreaterThan(attempts / 3);
    const resumed = existsSync(join(chaotic, 'run.json')) ? start('resume', chaotic) : startTraining(chaotic, batch);
    expect(await ended(resumed)).toBe(0);
    expect(finalWeights(chaotic)).toEqual(wanted);
  },
  120_000,
);

test('killed, a run with its table in a mapped file ends with the weights of one in memory', async () => {
  const table = ['optimizer.table=row-adagrad', 'optimizer.tableStorage=bf16', 'epochs=2'];
  const calm = join(folder, 'table-in-memory');
  expect(await ended(startTraining(calm, table))).toBe(0);
  const run = join(folder, 'mapped-table');
  let kills = 0;
  for (let attempt = 0; attempt < 2; attempt++) {
    const child = startTraining(run, [...table, 'mapTables=true']);
    const end = ended(child);
    await duringCheckpoint(run, child);
    child.kill('SIGKILL');
    if ((await end) === null) kills++;
  }
  expect(kills).toBeGreaterThan(0);
  expect(readdirSync(run).filter(name => name.startsWith('.table'))).toEqual([]);
  expect(await ended(startTraining(run, [...table, 'mapTables=true']))).toBe(0);
  expect(finalWeights(run)).toEqual(finalWeights(calm));
}, 120_000);

test('Ctrl-C finishes the step, writes a checkpoint and says how to go on', async () => {
  const run = join(folder, 'interrupted');
  const child = startTraining(run);
  let said = '';
  child.stdout?.on('data', chunk => {
    said += String(chunk);
    if (said.includes('epoch 1') && !child.killed) child.kill('SIGINT');
  });
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  if (code === 0) return; // too fast to be interrupted on this machine
  expect(code).toBe(130);
  expect(said).toContain(`turbogr resume ${run}`);
  expect(await ended(start('resume', run))).toBe(0);
  expect(finalWeights(run)).toEqual(finalWeights(join(folder, 'calm-1')));
}, 60_000);
