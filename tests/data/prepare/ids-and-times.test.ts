// Ids are kept byte for byte; times are exact integers, and invalid ones are counted bad rows.
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Engine, literal } from '../../../src/data/prepare/engine.js';
import type { SequenceStore } from '../../../src/data/store/sequence-store.js';
import { Workbench, contents } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

const log = (...lines: readonly string[]): string => bench.write('log.csv', `user,item,time\n${lines.join('\n')}\n`);
const ids = (store: SequenceStore): string[] => contents(store).map(({ user, item }) => `${user}|${item}`);

function exactTimes(store: SequenceStore): bigint[] {
  return Array.from({ length: store.users }, (_, user) => {
    const n = store.length(user);
    const into = { item: new Int32Array(n), time: new BigInt64Array(n) };
    store.read(user, 0, n, into, 0);
    return [...into.time];
  }).flat();
}

describe('ids', () => {
  it.each(['7.7', '1e1', '007', '+7', ' 7', '7 ', '0x10', '1_000', '-0', '9223372036854775808', 'x'])(
    'of a column of integers are text when one of them is %j',
    async odd => {
      const { store, report } = await bench.build({ files: [log('7,5,1', '8,5,2', `${odd},5,3`, '10,6,4')] });
      expect(store.index.vocabulary.user.kind).toBe('text');
      expect(store.index.vocabulary.item.kind).toBe('integer');
      expect(new Set(contents(store).map(({ user }) => user))).toEqual(new Set(['7', '8', odd, '10']));
      expect(report.bad.rows).toBe(0);
    },
  );

  it.each([0, 1])('are the same wherever in the log the odd one stands, whatever --max-bad is (%d)', async maxBad => {
    const rows = Array.from({ length: 25_000 }, (_, i) => `${i % 50},${i % 20},${1_600_000_000 + i}`);
    const { store, report } = await bench.build({ files: [log(...rows, '007,7.5,1700000000')], maxBad });
    expect(store.users).toBe(51);
    expect([store.userId('007'), store.userId('7')].every(id => id !== undefined)).toBe(true);
    expect(store.itemId('7.5')).toBeDefined();
    expect(report.bad.rows).toBe(0);
    expect(report.notes).toContain(`'user' is read as text: "007" is not a plain whole number`);
  });

  it('that are no whole numbers are bad rows where integers are asked for', async () => {
    const files = [log(...Array.from({ length: 9 }, (_, i) => `${i},1,${i + 1}`), '007,1,5')];
    const { store, report } = await bench.build({ files, idType: 'integer', maxBad: 0.5 });
    expect(store.users).toBe(9);
    expect(report.bad.reasons).toEqual({ 'user is not a whole number': 1 });
  });

  it('around 2^53 and at the ends of 64 bits are exact', async () => {
    const large = ['9007199254740990', '9007199254740991', '9007199254740992', '9007199254740993', '9007199254740994'];
    const ends = ['9223372036854775807', '-9223372036854775807', '0'];
    for (const items of [large, ends]) {
      const { store } = await bench.build({ files: [log(...items.map((item, i) => `${item},${item},${i + 1}`))] });
      expect(new Set(ids(store))).toEqual(new Set(items.map(item => `${item}|${item}`)));
      for (const item of items) expect(store.originalItem(store.itemId(item) ?? -1)).toBe(item);
    }
  });

  it('may begin with U+FEFF, hold NUL, or be anything else that is UTF-8', async () => {
    const odd = ['\ufeffa', 'a', '\u0000b', 'b\u0000', '\ufeff', '日本', '👩‍🚀', '\u202eabc', 'é', 'e\u0301'];
    const objects = odd.flatMap((id, i) => [
      JSON.stringify({ user: id, item: id, time: i + 1 }),
      JSON.stringify({ user: id, item: 'a', time: i + 2 }),
    ]);
    const { store } = await bench.build({ files: [bench.write('odd.jsonl', objects.join('\n'))] });
    expect(new Set(ids(store))).toEqual(new Set(odd.flatMap(id => [`${id}|${id}`, `${id}|a`])));
    for (const id of odd) expect(store.originalUser(store.userId(id) ?? -1)).toBe(id);
  });

  it('of a Parquet file keep their type: 64-bit integers, unsigned ones beyond them, text', async () => {
    const engine = await Engine.open({ scratch: bench.folder, memoryBytes: 256e6, threads: 1 });
    const path = join(bench.folder, 'ids.parquet');
    await engine.run(
      `COPY (SELECT 18446744073709551615::UBIGINT AS user, '007' AS item, 1 AS time UNION ALL SELECT 7::UBIGINT, '7', 2) TO ${literal(path)} (FORMAT parquet)`,
    );
    engine.close();
    const { store } = await bench.build({ files: [path] });
    expect(new Set(ids(store))).toEqual(new Set(['18446744073709551615|007', '7|7']));
  });
});

describe('times', () => {
  it('in nanoseconds are exact and in order', async () => {
    const base = 1_700_000_000_123_456_700n;
    const steps = [9n, 3n, 7n, 1n, 5n];
    const { store } = await bench.build({ files: [log(...steps.map((step, i) => `1,${i},${base + step}`))] });
    expect(store.index.time.kind).toBe('ns');
    expect(exactTimes(store)).toEqual([1n, 3n, 5n, 7n, 9n].map(step => base + step));
    expect(contents(store).map(({ item }) => item)).toEqual(['3', '1', '4', '2', '0']);
  });

  it.each([
    [
      ['1650000000.000001', '1650000000.000003', '1650000000.000002'],
      'us',
      [1n, 2n, 3n].map(n => 1650000000000000n + n),
    ],
    [['1650000000.000000009', '1650000000.000000001'], 'ns', [1n, 9n].map(n => 1650000000000000000n + n)],
    [['1650000000123.5', '1650000000123.25'], 'us', [1650000000123250n, 1650000000123500n]],
    [['1650000001.0', '1650000000.0'], 's', [1650000000n, 1650000001n]],
    [['2022-04-15 05:20:00.000003', '2022-04-15 05:20:00.000002'], 'us', [1650000000000002n, 1650000000000003n]],
    [
      ['2022-04-15T05:20:00.123456789Z', '2022-04-15T05:20:00.123456788Z'],
      'ns',
      [1650000000123456788n, 1650000000123456789n],
    ],
    [['25/12/2021', '24/12/2021'], 'ms', [1640304000000n, 1640390400000n]],
    [['12/25/2021 13:00', '12/24/2021 1:00'], 'ms', [1640307600000n, 1640437200000n]],
    [['12/25/21 13:00', '12/24/21 1:00'], 'ms', [1640307600000n, 1640437200000n]],
    [['25.12.21', '24.12.21'], 'ms', [1640304000000n, 1640390400000n]],
    [['Dec 25, 2021', 'Dec 24, 2021'], 'ms', [1640304000000n, 1640390400000n]],
  ] as const)('written as %j are kept in %s', async (written, kind, expected) => {
    const rows = written.map((time, i) => `1,${i},"${time}"`);
    const { store } = await bench.build({ files: [log(...rows)] });
    expect(store.index.time.kind).toBe(kind);
    expect(exactTimes(store)).toEqual(expected);
  });

  it('that are JSON numbers with a fraction keep every digit', async () => {
    const times = ['1650000000.123456789', '1650000000.100000001', '1650000000.1', '1.65e9', '1650000001'];
    const lines = times.map((time, i) => `{"meta": {"time": 7.5}, "user": 1, "item": ${i}, "time" : ${time}}`);
    const { store, report } = await bench.build({ files: [bench.write('numbers.jsonl', lines.join('\n'))] });
    const digits = [0n, 100_000_000n, 100_000_001n, 123_456_789n, 1_000_000_000n];
    expect(report.bad.rows).toBe(0);
    expect(exactTimes(store)).toEqual(digits.map(ns => 1_650_000_000_000_000_000n + ns));
  });

  it('that only order events keep the order of their fractions', async () => {
    const { store } = await bench.build({ files: [log('1,0,0.30', '1,1,0.125', '1,2,0.2')] });
    expect(store.hasTime).toBe(false);
    expect(contents(store).map(({ item }) => item)).toEqual(['1', '2', '0']);
  });

  it('with a fraction that only a late row has are all read with fractions', async () => {
    const rows = Array.from({ length: 25_000 }, (_, i) => `${i % 50},${i % 20},${1_600_000_000 + i}`);
    const { store, report } = await bench.build({ files: [log(...rows, '0,1,1600000000.5')] });
    expect(store.index.time.kind).toBe('ms');
    expect(exactTimes(store).slice(0, 2)).toEqual([1_600_000_000_000n, 1_600_000_000_500n]);
    expect(report.bad.rows).toBe(0);
  });

  it.each(['nan', 'inf', '-inf', '1e30', '1e400', 'infinity', '-1.5', '9e18', 'soon', ''])(
    'are one bad row when one among fractions is %j',
    async odd => {
      const rows = Array.from({ length: 9 }, (_, i) => `1,${i},${1_650_000_000 + i}.5`);
      const { store, report } = await bench.build({ files: [log(...rows, `1,9,${odd}`)], maxBad: 0.2 });
      expect([store.events, report.bad.rows]).toEqual([9, 1]);
    },
  );

  it('whose day and month cannot be told apart are refused with both readings', async () => {
    const files = [log('1,2,01/02/2024', '1,3,03/04/2024')];
    await expect(bench.build({ files })).rejects.toMatchObject({
      code: 'ambiguous-dates',
      choices: ['%d/%m/%Y', '%m/%d/%Y'],
      remedy: "Say which: --time-format '%d/%m/%Y' or --time-format '%m/%d/%Y'.",
    });
    const { store } = await bench.build({ files, timeFormat: '%m/%d/%Y' });
    expect(exactTimes(store)[0]).toBe(BigInt(Date.UTC(2024, 0, 2)));
    await expect(bench.build({ files, timeFormat: '%Q' })).rejects.toMatchObject({ code: 'bad-time-format' });
  });

  it('in no known form are refused with the flag that helps', async () => {
    const files = [log('1,2,the third day', '1,3,later')];
    await expect(bench.build({ files })).rejects.toMatchObject({
      code: 'unreadable-times',
      remedy: expect.stringMatching(/--time-format/),
    });
  });
});

describe('input', () => {
  it.each([
    ['User ID,StockCode,InvoiceDate', 'User ID', 'StockCode', 'InvoiceDate'],
    ['visitorid,itemid,timestamp', 'visitorid', 'itemid', 'timestamp'],
    ['customer_id,product_id,date', 'customer_id', 'product_id', 'date'],
    ['CUSTOMER ID,sku,Date', 'CUSTOMER ID', 'sku', 'Date'],
    ['session_id,user_id,item_id,date,time_ms', 'user_id', 'item_id', 'time_ms'],
    ['userId,movieId,timestamp', 'userId', 'movieId', 'timestamp'],
  ])('with the header %s needs no flags', async (header, user, item, time) => {
    const row = header.split(',').map((_, i) => 1_650_000_000 + i);
    const { report } = await bench.build({ files: [bench.write('names.csv', `${header}\n${row.join(',')}\n`)] });
    expect(report.columns).toMatchObject({ user, item, time });
    expect(report.guessed).toEqual(['user', 'item', 'time']);
  });

  it('in Latin-1 or UTF-16 is refused with the flag that reads it', async () => {
    const rows = Array.from({ length: 20 }, (_, i) => `Zoë${i % 3},café${i % 4},${1_650_000_000 + i}`);
    const text = `user,item,time\n${rows.join('\n')}\n`;
    const latin = bench.write('latin.csv', Buffer.from(text, 'latin1'));
    await expect(bench.build({ files: [latin] })).rejects.toMatchObject({
      remedy: expect.stringMatching(/--encoding latin-1/),
    });
    const wide = bench.write('wide.csv', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')]));
    await expect(bench.build({ files: [wide] })).rejects.toMatchObject({ remedy: 'Add --encoding utf-16.' });
    const plain = await bench.build({ files: [bench.write('plain.csv', text)] });
    for (const [file, encoding] of [
      [latin, 'latin-1'],
      [wide, 'utf-16'],
    ] as const) {
      const { store } = await bench.build({ files: [file], csv: { encoding } });
      expect(store.fingerprint).toBe(plain.store.fingerprint);
    }
  });

  it('with text that is not UTF-8 in a late column loses that row and no other', async () => {
    const rows = Array.from({ length: 20 }, (_, i) => `${i},x,${i % 3},${i % 4},t${1_650_000_000 + i}`);
    const text = Buffer.from(`row,note,user,time,item\n${rows.join('\n')}\n1,x,2,3,\u00ff\u00fe\n`, 'latin1');
    const { report } = await bench.build({ files: [bench.write('late.csv', text)], maxBad: 0.1 });
    expect(report.bad.reasons).toEqual({ 'invalid encoding': 1 });
    expect(report.events).toBe(20);
  });
});
