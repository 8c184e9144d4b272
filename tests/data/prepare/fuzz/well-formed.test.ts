// Random well-formed logs compared with their intended events: every event, their order, every digit of a time. TURBOGR_LONG=1 reads
// 300 of them; TURBOGR_SEED sets the first seed.
import { afterAll, expect, test } from 'vitest';
import { Engine, literal } from '../../../../src/data/prepare/engine.js';
import type { SequenceStore } from '../../../../src/data/store/sequence-store.js';
import { Random } from '../../../../src/util/random.js';
import { Workbench } from '../workbench.js';
import { type MeantEvent, type RandomLog, randomLog } from './random-log.js';

const LOGS = process.env['TURBOGR_LONG'] === '1' ? 300 : 60;
const SEED = Number(process.env['TURBOGR_SEED'] ?? 18);

const bench = new Workbench();
afterAll(() => bench.remove());

const PER_UNIT: Record<string, bigint> = { s: 1_000_000_000n, ms: 1_000_000n, us: 1_000n, ns: 1n };

/** What the log should become, user by user. */
function meant({ events, time }: RandomLog): Map<string, string[]> {
  const users = new Map<string, MeantEvent[]>();
  for (const event of events) users.set(event.user, [...(users.get(event.user) ?? []), event]);
  const line = ({ item, time: at }: MeantEvent): string => `${item} @ ${time.name === 'an order' ? '' : at}`;
  return new Map(
    [...users].map(([user, own]) => {
      const ordered = own.toSorted((a, b) => Number(a.time - b.time > 0n) - Number(b.time - a.time > 0n));
      return [user, ordered.map(line)];
    }),
  );
}

function stored(store: SequenceStore): Map<string, string[]> {
  const unit = PER_UNIT[store.index.time.kind];
  return new Map(
    Array.from({ length: store.users }, (_, user) => {
      const n = store.length(user);
      const into = { item: new Int32Array(n), ...(unit !== undefined && { time: new BigInt64Array(n) }) };
      store.read(user, 0, n, into, 0);
      const lines = Array.from(into.item, (item, i) => {
        const at = unit === undefined ? '' : into.time![i]! * unit;
        return `${store.originalItem(item)} @ ${at}`;
      });
      return [store.originalUser(user), lines];
    }),
  );
}

/** Parquet has types: integers where all ids are, timestamps where times are dates. */
async function writeParquet(path: string, { events, time }: RandomLog): Promise<void> {
  const integers = (ids: readonly string[]): boolean =>
    ids.every(id => /^(0|-?[1-9]\d*)$/.test(id) && BigInt.asIntN(64, BigInt(id)) === BigInt(id));
  const types = [
    integers(events.map(({ user }) => user)) ? 'BIGINT' : 'VARCHAR',
    integers(events.map(({ item }) => item)) ? 'BIGINT' : 'VARCHAR',
    time.name.startsWith('dates')
      ? time.step < 1_000n
        ? 'TIMESTAMP_NS'
        : 'TIMESTAMPTZ'
      : time.name.startsWith('fractions')
        ? 'DECIMAL(28, 9)'
        : 'BIGINT',
  ];
  const rows = events.map(event => {
    const cells = [event.user, event.item, time.write(event.time)];
    return `(${cells.map((cell, c) => `${literal(cell)}::${types[c]}`).join(', ')})`;
  });
  const engine = await Engine.open({ scratch: bench.folder, memoryBytes: 256e6, threads: 1 });
  try {
    await engine.run(
      `COPY (SELECT * FROM (VALUES ${rows.join(', ')}) AS log("user", item, "timestamp")) TO ${literal(path)} (FORMAT parquet)`,
    );
  } finally {
    engine.close();
  }
}

async function filesOf(log: RandomLog, seed: number): Promise<string[]> {
  if (log.format !== 'parquet') return log.files.map(({ name, content }) => bench.write(`${seed}/${name}`, content));
  const path = bench.write(`${seed}/log.parquet`, '');
  await writeParquet(path, log);
  return [path];
}

test(`${LOGS} well-formed logs come out as they were meant`, async () => {
  const wrong: string[] = [];
  for (let n = 0; n < LOGS; n++) {
    const log = randomLog(new Random(SEED, 'well-formed').stream(n));
    const files = await filesOf(log, n);
    try {
      const { store, report } = await bench.build({ files, threads: 1 });
      expect(stored(store)).toEqual(meant(log));
      expect([report.rows, report.bad.rows, report.events]).toEqual([log.events.length, 0, log.events.length]);
    } catch (error) {
      wrong.push(
        `${n}: ${log.about}, ${files[0]}: ${error instanceof Error ? error.message.slice(0, 1500) : String(error)}`,
      );
    }
  }
  expect(wrong).toEqual([]);
}, 3_600_000);
