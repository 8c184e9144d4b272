// Signals that stop a run: each leads to a checkpoint, the exit status that shells expect, and a run that resumes to the weights of
// the uninterrupted one. Runs the built command line, as a user would.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepare } from '../../src/data/prepare/prepare.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { openRecommender } from '../../src/jobs/recommend.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-signals-'));
const store = join(folder, 'store');
/** Long enough to be stopped in the middle. */
const CONFIG = ['model.d=16', 'model.blocks=1', 'model.maxLength=50', 'batch.tokens=256', 'epochs=6'];

beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: npm run build:ts`);
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 150, videos: 200, meanLength: 40, margin: false });
  await prepare({ files: [log], out: store });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

function startTraining(run: string, ...more: string[]): ChildProcess {
  const flags = [...CONFIG, ...more].flatMap(key => ['--set', key]);
  const args = [MAIN, 'train', store, '--run', run, '--threads', '1', ...flags];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Calls `act` once the first epoch was told; gives status and what was said on stderr. */
async function stopped(child: ChildProcess, act: () => void): Promise<{ code: number | null; errors: string }> {
  let [said, errors, done] = ['', '', false];
  child.stdout?.on('data', chunk => {
    said += String(chunk);
    if (said.includes('epoch 1 ') && !done) {
      done = true;
      act();
    }
  });
  child.stderr?.on('data', chunk => {
    errors += String(chunk);
  });
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  return { code, errors };
}

function finalWeights(run: string): string[] {
  return readFileSync(join(run, 'report.json'), 'utf8').match(/^ {2}"(digest|step)": .*$/gm) ?? [];
}

async function calmWeights(): Promise<string[]> {
  const calm = join(folder, 'calm');
  if (!existsSync(join(calm, 'report.json'))) await stopped(startTraining(calm), () => {});
  return finalWeights(calm);
}

test.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
  ['SIGINT', 130],
] as const)('%s: a checkpoint in the middle of the epoch, status %i, nothing half written', async (signal, status) => {
  const wanted = await calmWeights();
  const run = join(folder, signal);
  const child = startTraining(run);
  const { code, errors } = await stopped(child, () => child.kill(signal));
  expect({ code, errors }).toEqual({ code: status, errors: '' });
  expect(readdirSync(run).filter(name => name.includes('.tmp') || name === 'lock')).toEqual([]);
  expect(readFileSync(join(run, 'report.json'), 'utf8')).toContain('"reason": "interrupted"');
  await stopped(startTraining(run), () => {});
  expect(finalWeights(run)).toEqual(wanted);
});

test('a reader that goes away, as `| head` does, ends the run with a checkpoint and no stack', async () => {
  const wanted = await calmWeights();
  const run = join(folder, 'pipe');
  const child = startTraining(run);
  const { code, errors } = await stopped(child, () => child.stdout?.destroy());
  expect({ code, errors }).toEqual({ code: 141, errors: '' });
  expect(readFileSync(join(run, 'report.json'), 'utf8')).toContain('"reason": "interrupted"');
  await stopped(startTraining(run), () => {});
  expect(finalWeights(run)).toEqual(wanted);
});

test('a checkpoint is written by time, and when does not change the result', async () => {
  const wanted = await calmWeights();
  const run = join(folder, 'by-time');
  const { code } = await stopped(startTraining(run, 'checkpoint.minutes=0.00001', 'checkpoint.keep=50'), () => {});
  expect(code).toBe(0);
  expect(readdirSync(join(run, 'checkpoints')).length).toBeGreaterThan(6); // more than one per epoch
  expect(finalWeights(run)).toEqual(wanted);
});

test('a run that trains with a checkpoint every step can be read all the while, and is not harmed by it', async () => {
  const wanted = await calmWeights();
  const run = join(folder, 'read');
  const child = startTraining(run, 'checkpoint.every=1', 'checkpoint.keep=1');
  let opened = 0;
  const reading = setInterval(() => {
    if (!existsSync(join(run, 'checkpoints'))) return;
    try {
      openRecommender(run, { threads: 1 }).close();
      opened++;
    } catch (error) {
      // Before the first checkpoint there is nothing to open; anything else is a failure.
      if (!(error instanceof Error && 'code' in error && error.code === 'no-checkpoint')) throw error;
    }
  }, 5);
  const { code, errors } = await stopped(child, () => {});
  clearInterval(reading);
  expect({ code, errors }).toEqual({ code: 0, errors: '' });
  expect(opened).toBeGreaterThan(3);
  expect(finalWeights(run)).toEqual(wanted);
});
