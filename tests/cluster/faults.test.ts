// A rank that dies, stops, throws or hangs ends the whole job within ten seconds, with one message that names it, and
// leaves no process behind.

import { spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { rankProcess } from './disturbance.js';
import { launch, MAIN, MPIS, processesOf } from './mpi.js';

const MISBEHAVE = fileURLToPath(new URL('./programs/misbehave.mjs', import.meta.url));
const FAULT_CODE = 75;
let unique = 0;

const CASES = MPIS.flatMap(kind => (['SIGKILL', 'SIGSTOP'] as const).map(signal => ({ kind, signal })));

test.skipIf(MPIS.length === 0).each(CASES)('a rank gets $signal under $kind', async ({ kind, signal }) => {
  // An odd number of seconds, by which its processes are found.
  const mark = `${100 + process.pid / 1e7 + ++unique}`;
  const args = ['launch', '--mpi', kind, '-n', '3', 'ranks', '--seconds', mark];
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', chunk => (said += String(chunk)));
  child.stderr.on('data', chunk => (said += String(chunk)));
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  while (!said.includes('3 ranks have joined')) await sleep(100);
  process.kill(rankProcess(`ranks --seconds ${mark}`, 1)!, signal);
  const from = performance.now();
  expect(await ended).toBe(FAULT_CODE);
  expect(performance.now() - from).toBeLessThan(10_000);
  expect(said.match(/^turbogr: /gm)).toHaveLength(1);
  const cause = signal === 'SIGKILL' ? 'it died' : 'no sign of life';
  expect(said).toMatch(new RegExp(`rank 1 on ${hostname()}: ${cause}`));
  await sleep(500);
  expect(processesOf(`--seconds ${mark}`)).toEqual([]);
});

const WAYS = [
  { how: 'throw', who: '1', says: `rank 1 on ${hostname()}: Error: a bug of ours`, code: FAULT_CODE },
  { how: 'refuse', who: 'all', says: 'turbogr: there is no store\n  Copy it.', code: 2 },
  { how: 'refuse', who: '1', says: `rank 1 on ${hostname()}: there is no store`, code: 2 },
  { how: 'hang', who: '1', says: `rank 1 on ${hostname()}: its JavaScript has not run for 3 s`, code: FAULT_CODE },
  { how: 'abort', who: '1', says: `rank 1 on ${hostname()}: it died`, code: FAULT_CODE },
  { how: 'mute-throw', who: '1', says: `rank 1 on ${hostname()}: Error: a bug of ours`, code: FAULT_CODE },
  { how: 'mute-hang', who: '1', says: `rank 1 on ${hostname()}: its JavaScript has not run for 3 s`, code: FAULT_CODE },
];

test.skipIf(MPIS.length === 0).each(MPIS.flatMap(kind => WAYS.map(way => ({ kind, ...way }))))(
  '$who: $how under $kind',
  async ({ kind, how, who, says, code }) => {
    const ended = await launch(kind, 2, '--patience', '3', MISBEHAVE, how, who);
    expect(ended.stderr.match(/^turbogr: /gm)).toHaveLength(1);
    expect(ended.stderr).toContain(says);
    expect(ended.code).toBe(code);
    expect(ended.seconds).toBeLessThan(20);
    expect(processesOf(MISBEHAVE)).toEqual([]);
  },
);

test.skipIf(MPIS.length === 0)('a rank that comes late to the groups is waited for', async () => {
  const ended = await launch(MPIS[0]!, 2, MISBEHAVE, 'late', '1');
  expect(ended.stderr).toBe('');
  expect(ended.code).toBe(0);
});

test.skipIf(MPIS.length === 0)('a job that a fault ended is started again as often as asked', async () => {
  const ended = await launch(MPIS[0]!, 2, '--restarts', '1', MISBEHAVE, 'throw', '1');
  expect(ended.stderr.match(/starting again, 1 left/g)).toHaveLength(1);
  expect(ended.code).toBe(FAULT_CODE);
});
