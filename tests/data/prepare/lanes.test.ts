// However many lanes there are, and however the users fall into shards: the same bytes.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { rankItems } from '../../../src/data/prepare/compact-items.js';
import { Engine } from '../../../src/data/prepare/engine.js';
import { Lanes } from '../../../src/data/prepare/lanes.js';
import { type EventPlan, sealEvents, sortEvents } from '../../../src/data/prepare/write-events.js';
import { planShards } from '../../../src/data/store/shard-writer.js';
import { Workbench } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

const USERS = 40;
const ITEMS = 50;
const EVENTS = 5000;
const PLAN: EventPlan = {
  columns: [
    { name: 'item', dtype: 'I32', sql: 'item', missing: 0 },
    { name: 'time', dtype: 'I64', sql: 'time', missing: 0 },
  ],
  action: null,
  query: (first, last) =>
    `SELECT user, item, time FROM events WHERE user BETWEEN ${first} AND ${last} ORDER BY user, time, rowid`,
};

async function write(
  threads: number,
): Promise<{ lanes: number; shards: Buffer[]; content: string[]; counts: number[] }> {
  const folder = join(bench.folder, `lanes-${threads}`);
  const scratch = join(folder, 'scratch');
  mkdirSync(scratch, { recursive: true });
  const engine = await Engine.open({ scratch, memoryBytes: 256e6, threads: 1 });
  await engine.run(
    `CREATE TABLE events AS SELECT (i * 7 % ${USERS})::INTEGER AS user, (i * i % ${ITEMS})::INTEGER AS item, i % 9 AS time
     FROM range(${EVENTS}) t(i)`,
  );
  engine.close();
  const shared = (n: number): Int32Array => new Int32Array(new SharedArrayBuffer(4 * n));
  const lengths = shared(USERS).fill(EVENTS / USERS);
  const shards = planShards(lengths, 300);
  const lanes = new Lanes({ scratch, memoryBytes: 1e9, threads, places: ITEMS });
  try {
    await sortEvents(lanes, { folder, plan: PLAN, shards, lengths, onEvents: () => {} });
    const { counts, dense } = rankItems({ first: 0, listed: shared(ITEMS) }, lanes.tallies);
    const written = await sealEvents(lanes, { folder, plan: PLAN, shards, dense });
    expect(written.shards.length).toBe(shards.length);
    return {
      lanes: lanes.tallies.length,
      shards: written.shards.map(({ file }) => readFileSync(join(folder, file))),
      content: written.content,
      counts: [...counts],
    };
  } finally {
    await lanes.close();
  }
}

describe('lanes', () => {
  it('write the same shards, one or three', async () => {
    const one = await write(1);
    const three = await write(3);
    expect([one.lanes, three.lanes]).toEqual([1, 3]);
    expect(three.counts).toEqual(one.counts);
    expect(three.counts.reduce((n, count) => n + count)).toBe(EVENTS);
    expect(three.content).toEqual(one.content);
    expect(three.shards).toEqual(one.shards);
  });

  it('fail with the message of the lane that failed', async () => {
    const lanes = new Lanes({ scratch: join(bench.folder, 'nowhere'), memoryBytes: 1e9, threads: 2, places: 0 });
    const lengths = Int32Array.of(1);
    const shards = planShards(lengths);
    const sorting = sortEvents(lanes, { folder: bench.folder, plan: PLAN, shards, lengths, onEvents: () => {} });
    await expect(sorting).rejects.toThrow(/stage.duckdb/);
    await lanes.close();
  });
});
