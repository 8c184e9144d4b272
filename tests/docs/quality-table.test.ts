// `scripts/quality-table.mjs`, which trains for hours, resumes after any interruption and ends with the weights of an uninterrupted run.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { Random } from '../../src/util/random.js';

const SCRIPT = join(process.cwd(), 'scripts', 'quality-table.mjs');
const ROW = 'times-ml-1m-hstu-ours-seed-1';
const REPORT = z.looseObject({ reason: z.string(), digest: z.string() });
const folder = mkdtempSync(join(tmpdir(), 'turbogr-quality-table-'));

beforeAll(() => {
  const random = new Random(1, 'log');
  const lines = ['user_id,item_id,time_s'];
  for (let user = 0; user < 40; user++) {
    for (let i = 0; i < 12; i++) lines.push(`${user},${random.below(60)},${1_000_000_000 + 60 * i}`);
  }
  writeFileSync(join(folder, 'ml-1m-times.csv.gz'), gzipSync(lines.join('\n')));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The script on the row, in a process group of its own. */
function start(out: string, ...flags: string[]): ChildProcess & { printed: string } {
  const words = [SCRIPT, '--data', folder, '--out', out, '--only', ROW, '--threads', '1', ...flags];
  const child = spawn(process.execPath, words, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const told = Object.assign(child, { printed: '' });
  child.stdout.on('data', piece => (told.printed += String(piece)));
  child.stderr.on('data', piece => (told.printed += String(piece)));
  return told;
}

/** What the script printed, once it has ended well. */
async function ended(child: ReturnType<typeof start>): Promise<string> {
  const [code] = await once(child, 'close');
  expect([code, child.printed]).toEqual([0, child.printed]);
  return child.printed;
}

/** Ends script and training by a signal as soon as so many epochs are in the log of the run. */
async function cutAfter(epochs: number, out: string, signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
  const child = start(out);
  const log = join(out, ROW, 'events.jsonl');
  const done = () => (existsSync(log) ? readFileSync(log, 'utf8').split('"kind":"checkpoint"').length - 1 : 0);
  while (done() < epochs && child.exitCode === null) await sleep(20);
  expect(child.exitCode).toBe(null);
  process.kill(-child.pid!, signal);
  await once(child, 'close');
}

const report = (out: string) => REPORT.parse(JSON.parse(readFileSync(join(out, ROW, 'report.json'), 'utf8')));

test('Ctrl-C, then SIGKILL, then to the end: the digest of a run that nobody cut', async () => {
  const [cut, whole] = [join(folder, 'cut'), join(folder, 'whole')];
  await cutAfter(2, cut, 'SIGINT');
  expect(report(cut).reason).toBe('interrupted');
  expect(await ended(start(cut, '--list'))).not.toContain('finished');
  await cutAfter(5, cut, 'SIGKILL');
  expect(await ended(start(cut))).toContain('resumed at step');
  expect(await ended(start(cut, '--list'))).toContain(`finished  ${ROW}`);
  await ended(start(whole));
  expect(report(cut).digest).toBe(report(whole).digest);

  const written = statSync(join(cut, ROW, 'report.json')).mtimeMs;
  expect(await ended(start(cut))).toBe(''); // nothing is left to do
  expect(statSync(join(cut, ROW, 'report.json')).mtimeMs).toBe(written);
}, 120_000);
