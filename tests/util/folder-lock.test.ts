import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { lockFolder } from '../../src/util/folder-lock.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-lock-'));
const file = join(folder, 'lock');
afterAll(() => rmSync(folder, { recursive: true }));

/** Leaves a lock as another process would. */
function leave(change: Record<string, unknown>): void {
  using _held = lockFolder(folder);
  const holder = { ...JSON.parse(readFileSync(file, 'utf8')), ...change };
  rmSync(file);
  writeFileSync(`${file}.kept`, JSON.stringify(holder));
}

function takeUp(): void {
  writeFileSync(file, readFileSync(`${file}.kept`));
  rmSync(`${file}.kept`);
}

test('a second one is refused with who holds it, until the first is done', () => {
  {
    using _held = lockFolder(folder);
    expect(() => lockFolder(folder)).toThrow(new RegExp(`process ${process.pid} on ${hostname()}`));
  }
  expect(readdirSync(folder)).toEqual([]);
  using _again = lockFolder(folder);
  expect(readdirSync(folder)).toEqual(['lock']);
});

test.each([
  ['a process that is gone', () => ({ pid: spawnSync('true').pid })],
  ['an earlier process of the same number', () => ({ started: '1' })],
])('a lock left by %s is taken over', (_, change) => {
  leave(change());
  takeUp();
  using _held = lockFolder(folder);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ pid: process.pid });
});

test.skipIf(!existsSync('/proc'))('a lock of a killed process that nobody reaped is taken over', async () => {
  // The shell becomes a program that does not ask for its child, which has ended: a zombie.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 30'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said]: unknown[] = await once(parent.stdout, 'data');
  const pid = Number(String(said));
  const stat = () => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  await expect.poll(() => stat()[0], { timeout: 10_000 }).toBe('Z');
  leave({ pid, started: stat()[19] });
  takeUp();
  {
    using _held = lockFolder(folder);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ pid: process.pid });
  }
  parent.kill();
});

test('a process of another machine is taken to run', () => {
  leave({ host: 'elsewhere', pid: 1 });
  takeUp();
  expect(() => lockFolder(folder)).toThrow(/process 1 on elsewhere/);
  expect(existsSync(file)).toBe(true);
});
