// Edge cases: less work than ranks, a table with fewer rows than ranks, a host without the store, a rank that is killed and
// restarted, a launcher that is killed.

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { orphansOf, rankProcess } from './disturbance.js';
import { launch, MAIN, MPIS, run } from './mpi.js';
import { SmallTraining } from './small-training.js';

const READY = MPIS.length > 0;
const WITHOUT_STORE = fileURLToPath(new URL('./programs/without-store.mjs', import.meta.url));
const small = new SmallTraining();
/** Three items in all: with four ranks at least one owns no row. */
const tiny = new SmallTraining();

beforeAll(async () => {
  if (!READY) return;
  await small.prepare();
  await tiny.prepareItems(3);
}, 180_000);

afterAll(() => {
  small.dispose();
  tiny.dispose();
});

async function alone(training: SmallTraining, name: string, settings: Record<string, string | number>): Promise<void> {
  const { code, stderr } = await run(process.execPath, [MAIN, ...training.command(name, settings)]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
}

test.skipIf(!READY).each(MPIS)('%s: fewer sequences than lanes leave ranks without work', async kind => {
  const settings = { trainUsers: 3, 'batch.lanes': 9, maxSteps: 4 };
  if (!existsSync(small.run('few'))) await alone(small, 'few', settings);
  const { code } = await launch(kind, 4, ...small.command(`few-${kind}`, settings));
  expect(code).toBe(0);
  expect(small.result(`few-${kind}`)).toEqual(small.result('few'));
});

test.skipIf(!READY).each(['sampled-softmax', 'full-softmax'])('%s: a rank may own no row of a table', async loss => {
  const settings = { 'loss.kind': loss, 'loss.negatives.count': 2, maxSteps: 4 };
  await alone(tiny, `one-${loss}`, settings);
  const { code, stderr } = await launch(MPIS[0]!, 4, ...tiny.command(`four-${loss}`, settings));
  expect(stderr).not.toContain('turbogr: ');
  expect(code).toBe(0);
  expect(tiny.result(`four-${loss}`)).toEqual(tiny.result(`one-${loss}`));
});

test.skipIf(!READY || process.getuid?.() !== 0)('a host without the store is named', async () => {
  const ended = await launch(MPIS[0]!, 2, WITHOUT_STORE, '1', small.store, MAIN, ...small.command('nowhere'));
  expect(ended.stderr.match(/^turbogr: /gm)).toHaveLength(1);
  expect(ended.stderr).toMatch(new RegExp(`rank 1 on ${hostname()}: .*${small.store}`));
  expect(ended.code).toBe(2);
});

/** `launch --restarts 3`, and what it has done so far. */
function startLaunch(name: string, ...flags: string[]) {
  const words = [MAIN, 'launch', '--mpi', MPIS[0]!, '-n', '2', ...flags, ...small.command(name)];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', chunk => (said += String(chunk)));
  child.stdout.resume();
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  const checkpoints = () => {
    const path = join(small.run(name), 'checkpoints');
    return existsSync(path) ? readdirSync(path).filter(step => step.startsWith('step-')) : [];
  };
  return { child, ended, said: () => said, checkpoints };
}

test.skipIf(!READY)('--restarts goes on from the newest checkpoint, to the same weights', async () => {
  await alone(small, 'calm', {});
  const job = startLaunch('restarted', '--restarts', '3');
  const newest = () => job.checkpoints().sort().at(-1) ?? '';
  const until = async (is: () => boolean) => {
    while (job.child.exitCode === null && !is()) await sleep(20);
  };
  for (const left of [3, 2]) {
    const known = newest();
    let rank: number | undefined;
    await until(() => newest() > known && (rank = rankProcess(small.run('restarted'), 1)) !== undefined);
    if (rank !== undefined) process.kill(rank, 'SIGKILL');
    await until(() => job.said().includes(`starting again, ${left} left`));
  }
  expect(await job.ended).toBe(0);
  expect(job.said()).toContain('starting again, 2 left');
  expect(small.result('restarted')).toEqual(small.result('calm'));
});

test.skipIf(!READY).each(['SIGKILL', 'SIGTERM'] as const)(
  'a launcher that gets %s leaves no rank behind',
  async signal => {
    const name = `left-${signal}`;
    const job = startLaunch(name);
    while (job.child.exitCode === null && job.checkpoints().length === 0) await sleep(20);
    job.child.kill(signal);
    await job.ended;
    expect(await orphansOf(small.run(name))).toEqual([]);
    const { code } = await run(process.execPath, [MAIN, 'resume', small.run(name)]);
    expect(code).toBe(0);
    expect(small.result(name)).toEqual(small.result('calm'));
  },
);
