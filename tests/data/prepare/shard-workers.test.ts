// The same bytes for any number of workers, any shards and any order of the log.
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { rankItems } from '../../../src/data/prepare/compact-items.js';
import { Engine } from '../../../src/data/prepare/engine.js';
import { ShardWorkers } from '../../../src/data/prepare/shard-workers.js';
import { type EventPlan, sealEvents, sortEvents } from '../../../src/data/prepare/write-events.js';
import { planShards } from '../../../src/data/store/shard-writer.js';
import { Workbench } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

const USERS = 40;
const ITEMS = 50;
const EVENTS = 5000;
/** Both halves of an i64 matter, and a low half looks negative. */
const TIMES = [5, 2 ** 31 + 7, 2 ** 32 - 1, 2 ** 32 + 3];
const PLAN: EventPlan = {
  columns: [
    { name: 'item', dtype: 'I32', sql: 'item', missing: 0 },
    { name: 'time', dtype: 'I64', sql: 'time', missing: 0 },
  ],
  action: null,
  query: {
    events: 'events',
    users: 'users',
    user: 'user_key',
    integerUser: true,
    joins: [],
    columns: ['item', 'time'],
    time: 'time',
    inputOrder: 'events.rowid',
  },
};

type Written = { workers: number; shards: Buffer[]; content: string[]; counts: number[] };

/** `order`: of the staged table. The item tells the input order, so that ties are seen to keep it. */
async function write(threads: number, order: string): Promise<Written> {
  const folder = mkdtempSync(join(bench.folder, 'workers-'));
  const scratch = join(folder, 'scratch');
  mkdirSync(scratch);
  const engine = await Engine.open({ scratch, memoryBytes: 256e6, threads: 1 });
  await engine.run(
    `CREATE TABLE events AS SELECT 10 * (i * 7 % ${USERS}) AS user_key, (i // 100)::INTEGER AS item, TIMES[1 + i // 40 % 4] AS time
     FROM range(${EVENTS}) t(i) ORDER BY ${order}`.replace('TIMES', `[${TIMES.join(', ')}]`),
  );
  await engine.run(`CREATE TABLE users AS SELECT 10 * i AS value, i::INTEGER AS id FROM range(${USERS}) t(i)`);
  engine.close();
  const shared = (n: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * n));
  const lengths = shared(USERS).fill(EVENTS / USERS);
  const shards = planShards(lengths, 300);
  const workers = new ShardWorkers({
    scratch,
    memoryBytes: 1e9,
    threads,
    places: ITEMS,
    events: Number.POSITIVE_INFINITY,
  });
  try {
    await sortEvents(workers, { folder, plan: PLAN, shards, lengths, onEvents: () => {} });
    const { counts, dense } = rankItems({ first: 0, listed: shared(ITEMS) }, workers.tallies);
    const written = await sealEvents(workers, { folder, plan: PLAN, shards, dense });
    expect(written.shards.length).toBe(shards.length);
    return {
      workers: workers.tallies.length,
      shards: written.shards.map(({ file }) => readFileSync(join(folder, file))),
      content: written.content,
      counts: [...counts],
    };
  } finally {
    await workers.close();
  }
}

describe('workers', () => {
  it('write the same shards, one or three', async () => {
    const one = await write(1, 'i');
    const three = await write(3, 'i');
    expect([one.workers, three.workers]).toEqual([1, 3]);
    expect(three.counts).toEqual(one.counts);
    expect(three.counts.reduce((n, count) => n + count)).toBe(EVENTS);
    expect(three.content).toEqual(one.content);
    expect(three.shards).toEqual(one.shards);
  });

  it.each([
    ['lie in order', 'user_key, time, i'],
    ['lie in order but for the last user', `user_key, if(user_key < 10 * ${USERS - 1}, time, -time), i`],
    ['lie by user, not by time', 'user_key, i'],
    ['lie by user and time, but the users are torn', 'user_key = 200 AND time > 5, user_key, time, i'],
  ])('write the same shards when the events %s', async (_, order) => {
    const sorted = await write(2, 'i');
    const { shards, counts, content } = await write(2, order);
    expect(counts).toEqual(sorted.counts);
    expect(content).toEqual(sorted.content);
    expect(shards).toEqual(sorted.shards);
  });

  it('fail with the message of the worker that failed', async () => {
    const workers = new ShardWorkers({
      scratch: join(bench.folder, 'nowhere'),
      memoryBytes: 1e9,
      threads: 2,
      places: 0,
      events: 2 ** 20,
    });
    const lengths = Int32Array.of(1);
    const shards = planShards(lengths);
    const sorting = sortEvents(workers, { folder: bench.folder, plan: PLAN, shards, lengths, onEvents: () => {} });
    await expect(sorting).rejects.toThrow(/stage.duckdb/);
    await workers.close();
  });
});
