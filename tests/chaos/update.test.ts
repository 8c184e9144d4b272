// `turbogr update`: killed with kill -9 at any moment and restarted, it ends with the weights of an uninterrupted one.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { openRecommender, synthesize, train, update } from '../../src/index.js';
import { RunFolder } from '../../src/train/run-folder.js';
import { SafetensorsFile } from '../../src/util/safetensors.js';
import { SMALL_CONFIG } from '../support/small-run.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'turbogr-update-'));
const [parent, newer] = [join(folder, 'parent'), join(folder, 'newer.csv')];
const NEW_ITEMS = ['900001', '900002'];

beforeAll(async () => {
  const log = join(folder, 'log.csv');
  await synthesize({ out: log, users: 100, videos: 80, meanLength: 25, margin: false });
  const [header = '', ...rows] = readFileSync(log, 'utf8').trimEnd().split('\n');
  const time = (row: string): number => Number(row.split(',')[4]);
  const cut = rows.map(time).toSorted((a, b) => a - b)[Math.floor(rows.length * 0.7)]!;
  const later = rows.filter(row => time(row) >= cut);
  // Some of the new events are of items that nobody has seen before.
  const renamed = later.map((row, i) =>
    i % 10 === 0 ? row.replace(/^(\d+),\d+/, `$1,${NEW_ITEMS[i % 20 === 0 ? 0 : 1]}`) : row,
  );
  writeFileSync(join(folder, 'old.csv'), [header, ...rows.filter(row => time(row) < cut), ''].join('\n'));
  writeFileSync(newer, [header, ...renamed, ''].join('\n'));
  await train({ data: join(folder, 'old.csv'), run: parent, config: SMALL_CONFIG });
}, 300_000);

afterAll(() => rmSync(folder, { recursive: true }));

function startUpdate(run: string): ChildProcess {
  const settings = ['--epochs', '6', '--set', 'checkpoint.every=3', '--threads', '1'];
  return spawn(process.execPath, [MAIN, 'update', parent, newer, '--run', run, ...settings], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

const ended = (child: ChildProcess) => new Promise<number | null>(done => child.once('close', done));

function outcome(run: string): unknown {
  const report = z.object({ digest: z.string(), step: z.number(), test: z.object({ metrics: z.unknown() }) });
  return report.parse(JSON.parse(readFileSync(join(run, 'report.json'), 'utf8')));
}

test('killed while merging, training and writing a checkpoint, it ends as the undisturbed one', async () => {
  const calm = join(folder, 'calm');
  expect(await ended(startUpdate(calm))).toBe(0);

  const chaotic = join(folder, 'chaotic');
  const moments = [
    () => existsSync(join(chaotic, 'store')) || existsSync(join(chaotic, 'run.json')),
    () => existsSync(join(chaotic, 'checkpoints')) && readdirSync(join(chaotic, 'checkpoints')).length > 0,
    () =>
      existsSync(join(chaotic, 'checkpoints')) &&
      readdirSync(join(chaotic, 'checkpoints')).some(name => name.endsWith('.tmp')),
  ];
  for (const due of moments) {
    const child = startUpdate(chaotic);
    const end = ended(child);
    while (child.exitCode === null && !due()) await sleep(1);
    child.kill('SIGKILL');
    await end;
  }
  expect(await ended(startUpdate(chaotic))).toBe(0);
  expect(outcome(chaotic)).toEqual(outcome(calm));
}, 600_000);

test('new items start as the mean of their neighbours, and the new run names its parent', async () => {
  const calm = RunFolder.open(join(folder, 'calm'));
  const { description } = calm;
  expect(calm.find(description.parent!.place)).toBe(parent);
  expect(description.fingerprint).not.toBe(RunFolder.open(parent).description.fingerprint);

  using recommender = openRecommender(calm.path);
  const { source } = recommender.run;
  using before = openRecommender(parent);
  const known = before.items;
  const item = source!.itemId(NEW_ITEMS[0]!)!;
  expect(item).toBeGreaterThanOrEqual(known);
  const neighbours: number[] = [];
  for (let user = 0; user < source!.users; user++) {
    const { items } = source!.sequence(user);
    items.forEach((id, i) => {
      if (id !== item) return;
      for (const other of [items[i - 1], items[i + 1]])
        if (other !== undefined && other < known) neighbours.push(other);
    });
  }
  expect(neighbours.length).toBeGreaterThan(0);
  const start = new SafetensorsFile(calm.find(description.initialWeights!.place));
  const rows = start.read('items', 'F32');
  start.close();
  const d = recommender.dimension;
  for (let i = 0; i < d; i++) {
    const mean = neighbours.reduce((sum, id) => sum + rows[id * d + i]!, 0) / neighbours.length;
    expect(rows[item * d + i]).toBeCloseTo(mean, 6);
  }
  const [first] = await recommender.recommend([NEW_ITEMS[0]!], { k: 1 });
  expect(first!.score).toBeGreaterThan(-1e9);
});

test('the same command continues its own update; another log gets the next number', async () => {
  const settings = [{ epochs: 1 }];
  const first = await update({ parent, data: newer, settings });
  expect(first.run).toBe(`${parent}-update-1`);
  const again = await update({ parent, data: newer, settings });
  expect([again.run, again.digest]).toEqual([first.run, first.digest]);
  const more = join(folder, 'more.csv');
  writeFileSync(more, readFileSync(newer, 'utf8').split('\n').slice(0, 200).join('\n'));
  await expect(update({ parent, data: more, run: first.run })).rejects.toMatchObject({ code: 'run-exists' });
  await expect(update({ parent: first.run, data: more, settings })).rejects.toMatchObject({ code: 'nothing-new' });
  expect(existsSync(`${parent}-update-2`)).toBe(false);
}, 300_000);
