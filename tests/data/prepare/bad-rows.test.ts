// Nothing is dropped silently: each kind of bad row is counted, sampled with its line, and written to the rejects file.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { Workbench, contents } from './workbench.js';

const bench = new Workbench();
afterAll(() => bench.remove());

const GOOD = Array.from({ length: 20 }, (_, i) => `${i % 4},${i},${1_600_000_000 + i}`);

describe('bad rows', () => {
  it('names reason and line of each kind in a CSV, and keeps the rest', async () => {
    const lines = [...GOOD];
    lines.splice(
      3,
      0,
      '1,2',
      ',5,1600000000',
      '1,2,soon',
      '1,2,-5',
      '1,2,3,4',
      '1,,1600000000',
      '1,2,99999999999999',
      '1,2,',
    );
    const text = `user,item,time\n${lines.join('\n')}\n`;
    const invalid = Buffer.concat([Buffer.from(text), Buffer.from([0x31, 0x2c, 0xff, 0xfe, 0x2c, 0x31, 0x0a])]);
    const file = bench.write('kinds.csv', invalid);
    const { store, report } = await bench.build({ files: [file], maxBad: 0.5 });
    expect(report.rows).toBe(29);
    expect(report.bad.rows).toBe(9);
    expect(store.events).toBe(20);
    const found = Object.fromEntries(report.bad.samples.map(({ line, reason }) => [line, reason]));
    expect(found).toEqual({
      5: 'missing columns',
      6: 'user missing',
      7: 'unreadable time',
      8: 'time is negative',
      9: 'too many columns',
      10: 'item missing',
      11: 'time is after the year 2100',
      12: 'time missing',
      30: 'invalid encoding',
    });
    const rejects = readFileSync(join(store.folder, 'rejects.csv'), 'utf8');
    for (const { line, reason } of report.bad.samples) expect(rejects).toContain(`"${line}","${reason}"`);
  });

  it('refuses text that is not UTF-8', async () => {
    const text = Buffer.from(
      `user,item,time\n${GOOD.map(line => `u${line}`).join('\n')}\nu\u00e9,1,1600000000\n`,
      'latin1',
    );
    const { report } = await bench.build({ files: [bench.write('latin1.csv', text)], maxBad: 0.5 });
    expect(report.bad.reasons).toEqual({ 'invalid encoding': 1 });
  });

  it('counts every line that an unclosed quote swallows', async () => {
    const file = bench.write('quote.csv', `user,item,time\n${GOOD.join('\n')}\n1,"2,1600000000\n1,3,1600000001\n`);
    const { report } = await bench.build({ files: [file], maxBad: 0.5 });
    expect(report.rows).toBe(22);
    expect(report.bad.reasons).toEqual({ 'unclosed quote': 2 });
  });

  it('finds malformed and incomplete JSON lines', async () => {
    const objects = GOOD.map(line => line.split(',')).map(([user, item, time]) =>
      JSON.stringify({ user, item, time: Number(time) }),
    );
    objects.splice(
      1,
      0,
      '{"user": "1", "item":',
      '{"item": "1", "time": 1600000000}',
      '{"user": "1", "item": "2", "time": "x"}',
    );
    const { store, report } = await bench.build({
      files: [bench.write('lines.jsonl', objects.join('\n'))],
      maxBad: 0.5,
    });
    expect(store.events).toBe(20);
    expect(report.bad.samples.map(({ line, reason }) => [line, reason])).toEqual([
      [2, 'malformed record'],
      [3, 'user missing'],
      [4, 'unreadable time'],
    ]);
  });

  it('stops above the threshold and leaves the rejects beside the place of the store', async () => {
    const file = bench.write('many.csv', `user,item,time\n${GOOD.join('\n')}\n,1,1600000000\n`);
    const failed = bench.build({ files: [file] });
    await expect(failed).rejects.toThrow(/1 of 21 rows are bad \(4\.76 %\): user missing: 1/);
    const error: unknown = await failed.catch((reason: unknown) => reason);
    const path = /in (\S+\.rejects\.csv)\.$/.exec(
      error instanceof Error && 'remedy' in error ? String(error.remedy) : '',
    )?.[1];
    expect(existsSync(path ?? '')).toBe(true);
    await expect(
      bench.build({ files: [bench.write('all.csv', 'user,item,time\n,,\n,,\n')], maxBad: 1 }),
    ).rejects.toThrow(/2 of 2 rows/);
  });

  it('does not take the end of a cut-off gzip file for the end of the log', async () => {
    const whole = gzipSync(
      `user,item,time\n${Array.from({ length: 5000 }, (_, i) => `${i % 7},${(i * 7919) % 997},${1.6e9 + i}`).join('\n')}\n`,
    );
    const { store } = await bench.build({ files: [bench.write('whole.csv.gz', whole)] });
    expect(store.events).toBe(5000);
    const cut = bench.write('cut.csv.gz', whole.subarray(0, Math.floor(whole.length * 0.7)));
    await expect(bench.build({ files: [cut] })).rejects.toThrow(/cut.csv.gz is cut off or damaged/);
  });

  it.each([
    ['', /is empty/],
    ['user,item,time\n', /has no rows/],
    ['a,b,c\n1,2,3\n', /no column is clearly the user; there are a, b, c/],
  ])('says what is wrong with the file %j', async (content, message) => {
    await expect(bench.build({ files: [bench.write('wrong.csv', content)] })).rejects.toThrow(message);
  });

  it('says what is wrong with the options', async () => {
    const files = [bench.write('good.csv', `user,item,time\n${GOOD.join('\n')}\n`)];
    await expect(bench.build({ files: ['nowhere.csv'] })).rejects.toThrow(/nowhere.csv does not exist/);
    await expect(bench.build({ files: [bench.folder] })).rejects.toThrow(/is a folder/);
    await expect(bench.build({ files: ['/dev/null'] })).rejects.toThrow(/is a pipe or a device/);
    await expect(bench.build({ files: [join(bench.folder, 'no*.csv')] })).rejects.toThrow(/no file matches/);
    await expect(bench.build({ files, item: 'itme' })).rejects.toThrow(/has no column 'itme'/);
    await expect(bench.build({ files, memory: 'lots' })).rejects.toThrow(/'lots' is not a size/);
    await expect(bench.build({ files, split: 'random' })).rejects.toThrow(/'random' is not a split/);
    await expect(bench.build({ files, minRating: 3 })).rejects.toThrow(/--min-rating needs a rating column/);
    await expect(bench.build({ files, actions: ['1'] })).rejects.toThrow(/--actions needs an action column/);
    await expect(bench.build({ files, catalogue: 3 })).rejects.toThrow(/--catalogue 3 is below the 20 items/);
    await expect(bench.build({ files, kCore: 6 })).rejects.toThrow(/removed the last event/);
    const { store } = await bench.build({ files });
    expect(contents(store).length).toBe(20);
  });
});
