import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { lockFolder } from '../../src/util/folder-lock.js';
import { ownIdentity, type ProcessIdentity } from '../../src/util/process-identity.js';

/** So that tests about another machine take no half minute. */
const QUICK = { renew: 20, patience: 200, longDead: 300_000 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'turbogr-lock-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Leaves a lock as another process would; gives its file. */
function leave(change: Partial<ProcessIdentity>): string {
  const { pid, started, place, host } = { ...ownIdentity(), ...change };
  mkdirSync(join(folder, 'lock'));
  const file = join(folder, 'lock', `held.${pid}.${started}.${place}.1.${host}`);
  writeFileSync(file, '');
  return file;
}

/** Who is named in the lock once this process has taken it. */
async function holdersAfterTaking(timing = QUICK): Promise<(string | undefined)[]> {
  using lock = await lockFolder(folder, timing);
  lock.assertHeld();
  return readdirSync(join(folder, 'lock')).map(name => name.split('.')[1]);
}
const US = [String(process.pid)];

test('a second one is refused with who holds it, until the first is done', async () => {
  {
    using _held = await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toThrow(`process ${process.pid} on `);
  }
  expect(readdirSync(folder)).toEqual([]);
  using _again = await lockFolder(folder);
  expect(readdirSync(folder)).toEqual(['lock']);
});

test.each([
  ['a process that is gone', () => ({ pid: spawnSync('true').pid })],
  ['an earlier process of the same number', () => ({ started: '1' })],
])('a lock left by %s is taken over at once', async (_, change) => {
  leave(change());
  expect(await holdersAfterTaking()).toEqual(US);
});

test.skipIf(!existsSync('/proc'))('a lock of a killed process that nobody reaped is taken over', async () => {
  // The shell becomes a program that does not ask for its child, which has ended: a zombie.
  const parent = spawn('sh', ['-c', 'sleep 0.3 & echo $!; exec sleep 30'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said]: unknown[] = await once(parent.stdout, 'data');
  const pid = Number(String(said));
  const stat = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  await expect.poll(() => stat()[0], { timeout: 10_000 }).toBe('Z');
  leave({ pid, started: stat()[19]! });
  expect(await holdersAfterTaking()).toEqual(US);
  parent.kill();
});

test('a container that was killed and restarted gets its run back when the lock is no longer renewed', async () => {
  leave({ place: 'another0boot', host: 'container-before' });
  const began = performance.now();
  expect(await holdersAfterTaking()).toEqual(US);
  expect(performance.now() - began).toBeGreaterThan(QUICK.patience / 2);
});

test('a very old lock of another machine needs no waiting', async () => {
  const file = leave({ place: 'another0boot', host: 'elsewhere' });
  utimesSync(file, 1, 1);
  expect(await holdersAfterTaking({ ...QUICK, patience: 3_600_000 })).toEqual(US);
});

test('a process of another machine that renews its lock is left alone', async () => {
  const file = leave({ place: 'another0boot', host: 'elsewhere', pid: 1 });
  const beating = setInterval(() => utimesSync(file, new Date(), new Date()), 10);
  try {
    await expect(lockFolder(folder, QUICK)).rejects.toThrow(/process 1 on elsewhere/);
  } finally {
    clearInterval(beating);
  }
  expect(existsSync(file)).toBe(true);
});

test('who was taken over is told before it writes', async () => {
  const lock = await lockFolder(folder, QUICK);
  const [mine] = readdirSync(join(folder, 'lock'));
  rmSync(join(folder, 'lock', mine!));
  expect(() => lock.assertHeld()).toThrow('has taken over');
  lock[Symbol.dispose]();
});

test("the lock renews itself, and leftovers of killed takers go, those of living ones don't", async () => {
  const { place, host, started } = ownIdentity();
  const dead = `.lock.held.${spawnSync('true').pid}.1.${place}.1.${host}.tmp`;
  const alive = `.lock.held.${process.pid}.${started}.${place}.999.${host}.tmp`;
  for (const name of [dead, alive]) mkdirSync(join(folder, name));
  using _held = await lockFolder(folder, QUICK);
  expect(readdirSync(folder).sort()).toEqual([alive, 'lock'].sort());
  const { mtimeMs: before } = statOf();
  await sleep(100);
  expect(statOf().mtimeMs).toBeGreaterThan(before);
});

function statOf() {
  const lock = join(folder, 'lock');
  return statSync(join(lock, readdirSync(lock)[0]!));
}

test('of six that have all found the holder dead, one takes over and five are refused', async () => {
  // Every one of them decides before any of them acts: the moment at which a lock changes hands twice if it can.
  leave({ place: 'another0boot', host: 'elsewhere' });
  const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => lockFolder(folder, QUICK)));
  const held = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  expect(held).toHaveLength(1);
  expect(readdirSync(join(folder, 'lock'))).toHaveLength(1);
  held[0]!.assertHeld();
  held[0]![Symbol.dispose]();
});

const COUNTS = z.object({ held: z.int(), together: z.int(), errors: z.array(z.string()) });

/** TURBOGR_LONG=1 gives the long form. */
const SECONDS = process.env['TURBOGR_LONG'] === undefined ? 3 : 60;

test('six processes that take a lock and die with it: never two at a time', async () => {
  const script = fileURLToPath(new URL('lock-taker.mjs', import.meta.url));
  const dead = String(spawnSync('true').pid);
  const until = String(Date.now() + SECONDS * 1000);
  const children = Array.from({ length: 6 }, () => fork(script, [folder, until, dead]));
  const answers = await Promise.all(
    children.map(async child => {
      const [counts]: unknown[] = await once(child, 'message');
      return COUNTS.parse(counts);
    }),
  );
  const total = (key: 'held' | 'together') => answers.reduce((sum, counts) => sum + counts[key], 0);
  expect(answers.flatMap(({ errors }) => errors)).toEqual([]);
  expect(total('together')).toBe(0);
  expect(total('held')).toBeGreaterThan(30);
});
