import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { UserError } from '../../src/util/errors.js';
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

test.each([
  ['cut in the middle', '{"kind":"step","st'],
  ['not an event', '{"a":1}'],
  ['with a step that is no number', '{"kind":"step","step":"7","time":"x"}'],
])('a line that is %s is named with its number and a remedy', (_, line) => {
  const path = join(folder, 'damaged.jsonl');
  writeFileSync(path, `{"kind":"checkpoint","step":1,"time":"x"}\n${line}\n`);
  const read = () => readEvents(path);
  expect(read).toThrow(UserError);
  expect(read).toThrow(/line 2 of/);
});
