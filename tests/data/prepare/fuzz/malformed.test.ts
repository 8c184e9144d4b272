// Random malformed logs: bad rows among good ones are counted exactly and do not affect the good ones; a file that is damaged as a
// whole is refused with a reason, or every row of it is accounted for. Never a raw error. TURBOGR_LONG=1 tries 300 of each;
// TURBOGR_SEED sets the first seed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { Engine, literal } from '../../../../src/data/prepare/engine.js';
import { explainFailure } from '../../../../src/data/prepare/failures.js';
import { UserError } from '../../../../src/util/errors.js';
import { Random } from '../../../../src/util/random.js';
import { Workbench, contents } from '../workbench.js';
import { spoilFile } from './spoil-file.js';

const LOGS = process.env['TURBOGR_LONG'] === '1' ? 300 : 40;
const SEED = Number(process.env['TURBOGR_SEED'] ?? 18);

const bench = new Workbench();
afterAll(() => bench.remove());

const START = 1_650_000_000;

interface Row {
  user: string;
  item: string;
  time: string;
}

function goodRows(random: Random): Row[] {
  const text = random.below(2) === 0 ? 'u' : '';
  return Array.from({ length: 40 + random.below(40) }, (_, i) => ({
    user: `${text}${random.below(6)}`,
    item: String(random.below(15)),
    time: String(START + i),
  }));
}

/** Rows that are bad wherever they stand, and why. */
const BAD_ROWS: Record<string, (row: Row) => string> = {
  'missing columns': ({ user, item }) => `${user},${item}`,
  'too many columns': ({ user, item, time }) => `${user},${item},${time},x`,
  'user missing': ({ item, time }) => `,${item},${time}`,
  'item missing': ({ user, time }) => `${user},,${time}`,
  'time missing': ({ user, item }) => `${user},${item},`,
  'unreadable time': ({ user, item }) => `${user},${item},soon`,
  'time is negative': ({ user, item }) => `${user},${item},-7`,
  'time is after the year 2100': ({ user, item }) => `${user},${item},99999999999999`,
};

test(`${LOGS} logs with bad rows: each is counted for its reason, and no good one is lost or changed`, async () => {
  const wrong: string[] = [];
  for (let n = 0; n < LOGS; n++) {
    const random = new Random(SEED, 'bad rows').stream(n);
    const good = goodRows(random);
    const lines = good.map(({ user, item, time }) => `${user},${item},${time}`);
    const reasons: Record<string, number> = {};
    for (let bad = 1 + random.below(12); bad > 0; bad--) {
      const [reason, write] = Object.entries(BAD_ROWS)[random.below(Object.keys(BAD_ROWS).length)]!;
      lines.splice(random.below(lines.length + 1), 0, write(good[random.below(good.length)]!));
      reasons[reason] = (reasons[reason] ?? 0) + 1;
    }
    const end = random.below(2) === 0 ? '\n' : '\r\n';
    const text = `user,item,time${end}${lines.join(end)}${end}`;
    const zipped = random.below(4) === 0;
    const file = bench.write(`${n}/log.csv${zipped ? '.gz' : ''}`, zipped ? gzipSync(text) : text);
    try {
      const { store, report } = await bench.build({ files: [file], maxBad: 0.5, threads: 1 });
      const kept = contents(store).map(({ user, item, time }) => ({ user, item, time: String(time) }));
      const wanted = good.toSorted((a, b) =>
        a.user === b.user ? 0 : Number(a.user > b.user) - Number(a.user < b.user),
      );
      expect(kept).toEqual(wanted);
      expect(report.bad.reasons).toEqual(reasons);
      expect(report.rows).toBe(lines.length);
    } catch (error) {
      wrong.push(
        `${n} (${JSON.stringify(reasons)}), ${file}: ${error instanceof Error ? error.message.slice(0, 600) : String(error)}`,
      );
    }
  }
  expect(wrong).toEqual([]);
}, 3_600_000);

async function soundParquet(): Promise<Uint8Array> {
  const path = join(bench.folder, 'sound.parquet');
  const engine = await Engine.open({ scratch: bench.folder, memoryBytes: 256e6, threads: 1 });
  const rows = `SELECT i % 7 AS user, 'item ' || i % 11 AS item, ${START} + i AS time FROM range(500) AS r(i)`;
  await engine.run(`COPY (${rows}) TO ${literal(path)} (FORMAT parquet)`);
  engine.close();
  return readFileSync(path);
}

test(`${LOGS} spoiled files are refused with a reason, or all of their rows are accounted for`, async () => {
  const wrong: string[] = [];
  const ends = { refused: 0, accounted: 0 };
  const parquet = await soundParquet();
  for (let n = 0; n < LOGS; n++) {
    const random = new Random(SEED, 'spoiled').stream(n);
    const { name, content, how } = spoilFile(random, goodRows(random), parquet);
    const file = bench.write(`spoiled-${n}/${name}`, content);
    try {
      const { report } = await bench.build({ files: [file], maxBad: 0.9, threads: 1 });
      expect(report.events + report.bad.rows).toBe(report.rows);
      ends.accounted++;
    } catch (error) {
      const told = error instanceof UserError ? error : explainFailure(error, bench.folder);
      if (told && told.remedy !== '' && !told.message.includes('\n    at ')) ends.refused++;
      else wrong.push(`${n}: ${how}, ${file}: ${error instanceof Error ? error.stack?.slice(0, 600) : String(error)}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(Math.min(ends.refused, ends.accounted)).toBeGreaterThan(LOGS / 10); // both ways out are taken
}, 3_600_000);
