import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { EventLog, readEvents } from '../../src/train/event-log.js';

const folder = mkdtempSync(join(tmpdir(), 'turbogr-events-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a torn last line is dropped, and a resumed run forgets what will happen again', () => {
  const path = join(folder, 'events.jsonl');
  const log = new EventLog(path);
  for (const step of [1, 2, 3]) log.append({ kind: 'checkpoint', step, path: 'x', seconds: 0 });
  log.close();
  appendFileSync(path, '{"kind":"step","st');
  expect(readEvents(path).map(event => event.step)).toEqual([1, 2, 3]);
  const resumed = new EventLog(path, 2);
  resumed.append({ kind: 'checkpoint', step: 3, path: 'y', seconds: 0 });
  resumed.close();
  expect(readEvents(path).map(event => event.step)).toEqual([1, 2, 3]);
  expect(readEvents(path).at(-1)).toMatchObject({ path: 'y' });
});
