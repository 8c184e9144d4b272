// Acknowledged events survive any kind of exit, unacknowledged ones do not, and a key counts once.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { EventJournal, KeyConflict } from '../../src/server/event-journal.js';

const root = mkdtempSync(join(tmpdir(), 'turbogr-journal-'));
afterAll(() => rmSync(root, { recursive: true }));
const entry = (user: string, item: string, once?: { key: string; content: string }) => ({
  user,
  events: [{ item, time: 5 }],
  received: 1,
  ...once,
});

test('what was appended is there after a restart, in order', async () => {
  const folder = join(root, 'restart');
  const first = await EventJournal.open(folder);
  await Promise.all(Array.from({ length: 50 }, (_, i) => first.append(entry(`u${i % 3}`, String(i)))));
  await first.close();
  const again = await EventJournal.open(folder);
  expect(again.eventsOf('u1').map(({ item }) => Number(item))).toEqual(
    Array.from({ length: 50 }, (_, i) => i).filter(i => i % 3 === 1),
  );
  expect(again.eventsOf('nobody')).toEqual([]);
  await again.close();
});

test('a key counts once, also at the same time and after a restart; other content under it is refused', async () => {
  const folder = join(root, 'keys');
  const journal = await EventJournal.open(folder);
  const once = { key: 'k', content: 'a' };
  const twice = await Promise.all([journal.append(entry('u', '1', once)), journal.append(entry('u', '1', once))]);
  expect(twice).toEqual([{ duplicate: false }, { duplicate: true }]);
  await expect(journal.append(entry('u', '2', { key: 'k', content: 'b' }))).rejects.toThrow(KeyConflict);
  await journal.close();
  const again = await EventJournal.open(folder);
  expect(await again.append(entry('u', '1', once))).toEqual({ duplicate: true });
  expect(again.eventsOf('u')).toHaveLength(1);
  await again.close();
});

test('a line that was cut off is dropped, and the next append stands alone', async () => {
  const folder = join(root, 'torn');
  const journal = await EventJournal.open(folder);
  await journal.append(entry('u', '1'));
  await journal.close();
  appendFileSync(join(folder, 'events.jsonl'), '{"user":"u","events":[{"it');
  const again = await EventJournal.open(folder);
  expect(again.eventsOf('u')).toHaveLength(1);
  await again.append(entry('u', '2'));
  await again.close();
  expect(readFileSync(join(folder, 'events.jsonl'), 'utf8').trim().split('\n')).toHaveLength(2);
});

test('a damaged line is refused by its number, and two servers cannot share a folder', async () => {
  const folder = join(root, 'damaged');
  const journal = await EventJournal.open(folder);
  await journal.append(entry('u', '1'));
  await expect(EventJournal.open(folder)).rejects.toThrow(/is being written/);
  await journal.close();
  writeFileSync(join(folder, 'events.jsonl'), 'nonsense\n');
  await expect(EventJournal.open(folder)).rejects.toThrow('line 1');
});

test('after kill -9 everything that was acknowledged is there', async () => {
  const folder = join(root, 'killed');
  const module = pathToFileURL(join(process.cwd(), 'dist', 'server', 'event-journal.js')).href;
  const script = `
    const { EventJournal } = await import(${JSON.stringify(module)});
    const journal = await EventJournal.open(${JSON.stringify(folder)});
    for (let i = 0; ; i++) {
      await Promise.all([0, 1, 2].map(j => journal.append({ user: 'u', events: [{ item: String(3 * i + j) }], received: i })));
      process.stdout.write(3 * i + 2 + '\\n');
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let acknowledged = -1;
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged = Number(line);
    if (acknowledged > 60) child.kill('SIGKILL');
  }
  const again = await EventJournal.open(folder);
  const items = again.eventsOf('u').map(({ item }) => Number(item));
  expect(items.length).toBeGreaterThan(acknowledged);
  expect(items).toEqual(items.map((_, i) => i));
  await again.close();
});
