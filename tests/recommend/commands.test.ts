// recommend --all, similar and embed as commands: what they write is what the library answers, and an interruption costs
// nothing but time.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRecommender, type Recommender } from '../../src/index.js';
import { recommendAll } from '../../src/jobs/recommend-all.js';
import { PartFiles } from '../../src/jobs/part-files.js';
import { SafetensorsFile } from '../../src/util/safetensors.js';
import { type SmallRun, smallRun } from '../support/small-run.js';

const MAIN = join(process.cwd(), 'dist', 'cli', 'main.js');
let small: SmallRun;
let library: Recommender;
let items: string;
beforeAll(async () => {
  small = await smallRun();
  library = openRecommender(small.run);
  items = join(small.folder, 'items.csv');
  const rows = Array.from({ length: library.items }, (_, id) => `${library.originalItem(id)},Film ${id},${id % 3}`);
  writeFileSync(items, `item_id,title,shelf\n${rows.join('\n')}\n`);
}, 60_000);
afterAll(() => {
  library.close();
  small[Symbol.dispose]();
});

const turbogr = (...args: string[]): string => execFileSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });

async function expected(k: number) {
  const rows: string[] = [];
  for (let id = 0; id < library.users; id++) {
    const list = await library.recommend(library.historyAt(id), { k, at: 2_000_000_000_000 });
    list.forEach(({ item }, r) => rows.push([library.originalUser(id), r + 1, item].join()));
  }
  return rows;
}

test('recommend --all writes every user, as CSV, JSON lines and Parquet', async () => {
  const wanted = await expected(3);
  const ask = (out: string) =>
    turbogr('recommend', small.run, '--all', '--out', out, '-k', '3', '--at', '2000000000000');
  const csv = join(small.folder, 'recs.csv');
  expect(ask(csv)).toContain('120 users');
  const [header, ...rows] = readFileSync(csv, 'utf8').trim().split('\n');
  expect(header).toBe('user,rank,item,score,basis');
  expect(rows.map(row => row.split(',').slice(0, 3).join())).toEqual(wanted);
  const jsonl = join(small.folder, 'recs.jsonl');
  ask(jsonl);
  const lines: { user: string; rank: number; item: string }[] = readFileSync(jsonl, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));
  expect(lines.map(({ user, rank, item }) => [user, rank, item].join())).toEqual(wanted);
  const parquet = join(small.folder, 'recs.parquet');
  ask(parquet);
  const duckdb = await import('@duckdb/node-api');
  const connection = await (await duckdb.DuckDBInstance.create()).connect();
  const read = await connection.runAndReadAll(`SELECT "user", "rank", item FROM '${parquet}'`);
  expect(read.getRows().map(row => row.join())).toEqual(wanted);
  connection.closeSync();
  expect(readdirSync(small.folder).filter(name => name.endsWith('.parts'))).toEqual([]);
});

test('parts that are there are not computed again; parts of another list are', async () => {
  const out = join(small.folder, 'resumed.csv');
  const options = { out, k: 2, at: 2_000_000_000_000 };
  const stopped = new AbortController();
  stopped.abort();
  const begun = await recommendAll(library, { ...options, signal: stopped.signal });
  expect(begun).toMatchObject({ done: false, rows: 0 });
  const columns = { user: 'VARCHAR', rank: 'INTEGER', item: 'VARCHAR', score: 'FLOAT', basis: 'VARCHAR' };
  const identity = { digest: await library.run.model.digest(), users: library.users, k: 2, at: options.at };
  new PartFiles({ out, identity, columns }).write(0, [{ user: 'kept', rank: 1, item: 'x', score: 0, basis: 'model' }]);
  expect(await recommendAll(library, options)).toMatchObject({ done: true, resumed: 120 });
  expect(readFileSync(out, 'utf8')).toContain('kept,1,x');
  new PartFiles({ out, identity: { ...identity, k: 9 }, columns }).write(0, []);
  expect(await recommendAll(library, options)).toMatchObject({ resumed: 0, rows: 240 });
  expect(existsSync(`${out}.parts`)).toBe(false);
  mkdirSync(`${out}.parts`);
  writeFileSync(join(`${out}.parts`, 'thesis.txt'), '');
  await expect(recommendAll(library, options)).rejects.toMatchObject({ code: 'out-exists' });
  expect(readdirSync(`${out}.parts`)).toEqual(['thesis.txt']);
});

test('titles, filters and lists on the command line; popularity is named', () => {
  const flags = ['--items', items, '--filter', '{"shelf": 1}', '--json'];
  const found: { metadata: { title: string; shelf: number } }[] = JSON.parse(
    turbogr('recommend', small.run, '--user', '3', ...flags),
  );
  expect(found.length).toBeGreaterThan(3);
  expect(found.every(({ metadata }) => metadata.shelf === 1 && metadata.title.startsWith('Film'))).toBe(true);
  expect(turbogr('recommend', small.run, '--user', '3', '--items', items)).toContain('Film');
  expect(turbogr('recommend', small.run, '--history-file', writeEmpty())).toContain('most popular');
  expect(turbogr('recommend', small.run, '--history', '3', '--allow', '3')).toContain('No items');
  const wrong = spawnSync(process.execPath, [MAIN, 'recommend', small.run, '--all'], { encoding: 'utf8' });
  expect(wrong.status).toBe(2);
  expect(wrong.stderr).toContain('--out');
});

function writeEmpty(): string {
  const file = join(small.folder, 'empty.json');
  writeFileSync(file, '[]');
  return file;
}

test('similar answers as the library does', async () => {
  const item = library.originalItem(4);
  expect(JSON.parse(turbogr('similar', small.run, item, '-k', '3', '--json'))).toEqual(
    await library.similar(item, { k: 3 }),
  );
});

test('embed writes vectors under their ids', async () => {
  const out = join(small.folder, 'vectors.safetensors');
  expect(turbogr('embed', small.run, '--out', out, '--of', 'both', '--at', '2000000000000')).toContain(
    '90 items, 120 users',
  );
  const file = new SafetensorsFile(out);
  expect(file.read('items', 'F32')).toEqual(new Float32Array(await library.embedItems()));
  const [third] = await library.embedHistories([library.historyAt(3)], { at: 2_000_000_000_000 });
  expect(file.read('users', 'F32').slice(3 * 16, 4 * 16)).toEqual(third);
  const offsets = file.read('users_id_offsets', 'I64');
  const bytes = Buffer.from(file.read('users_id_bytes', 'U8'));
  expect(bytes.toString('utf8', Number(offsets[3]), Number(offsets[4]))).toBe(library.originalUser(3));
  file.close();
  const parquet = join(small.folder, 'vectors.parquet');
  turbogr('embed', small.run, '--out', parquet);
  const duckdb = await import('@duckdb/node-api');
  const connection = await (await duckdb.DuckDBInstance.create()).connect();
  const read = await connection.runAndReadAll(
    `SELECT count(*)::INT, min(len(vector))::INT, any_value(kind) FROM '${parquet}'`,
  );
  expect(read.getRows()).toEqual([[library.items, 16, 'item']]);
  connection.closeSync();
});
