// Synthetic logs: reproducible, in KuaiRand's layout, of its shape, and with the structure that they state.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { VideoCatalogue } from '../../src/data/synth/video-catalogue.js';
import { SECOND_HALF_START } from '../../src/data/synth/clock.js';
import { CsvWriter } from '../../src/data/synth/csv-writer.js';
import { LOG_COLUMNS } from '../../src/data/synth/log-rows.js';
import { measureMargin } from '../../src/data/synth/margin.js';
import { resolveShape } from '../../src/data/synth/shape.js';
import { synthesize } from '../../src/data/synth/synthesize.js';
import { UserEvents } from '../../src/data/synth/user-events.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'turbogr-synth-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const small = { users: 40, videos: 400, meanLength: 60 };

function readRows(path: string): number[][] {
  const [header, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(header).toBe(LOG_COLUMNS.join(','));
  return lines.map(line => line.split(',').map(Number));
}

describe('VideoCatalogue', () => {
  test('gives every video one id', () => {
    fc.assert(
      fc.property(fc.integer({ min: 50, max: 700 }), fc.nat(), (videos, seed) => {
        const catalogue = new VideoCatalogue(videos, seed);
        const ids = new Set<number>();
        for (let topic = 0; topic < catalogue.topics; topic++) {
          for (let rank = 0; rank < catalogue.topicSize(topic); rank++) ids.add(catalogue.id(topic, rank));
        }
        expect(ids.size).toBe(videos);
        expect(Math.max(...ids)).toBe(videos - 1);
      }),
    );
  });

  test('draws ranks with the probabilities it states', () => {
    const catalogue = new VideoCatalogue(2000, 1);
    const size = catalogue.topicSize(3);
    const draws = 20_000;
    const counts = new Float64Array(size);
    for (let i = 0; i < draws; i++) counts[catalogue.sampleRank(3, (i + 0.5) / draws)]!++;
    for (let rank = 0; rank < size; rank++) {
      expect(Math.abs(counts[rank]! - draws * catalogue.popularity(3, rank))).toBeLessThan(2);
    }
  });

  test('keeps a series inside its topic and comes round to its start', () => {
    const catalogue = new VideoCatalogue(500, 1);
    for (let rank = 0; rank < catalogue.topicSize(0); rank++) {
      const seen = new Set<number>();
      for (let step = 0; step < 16; step++) seen.add(catalogue.seriesRank(0, rank, step));
      expect(Math.max(...seen)).toBeLessThan(catalogue.topicSize(0));
      expect(catalogue.seriesRank(0, rank, 0)).toBe(rank);
      expect(seen).toContain(catalogue.seriesRank(0, catalogue.seriesRank(0, rank, 1), 1));
    }
  });
});

describe('the shape', () => {
  test('is lognormal(9.06, 0.80), clipped to 100..228,000, at full scale', () => {
    const { lengths } = resolveShape({ scale: 1, videos: 2 ** 25 });
    const sorted = lengths.toSorted();
    expect(lengths.length).toBe(27_285);
    expect(Math.abs(sorted[13_642]! / Math.exp(9.06) - 1)).toBeLessThan(0.03);
    expect(Math.abs(Math.log(sorted[22_955]! / sorted[4_330]!) / 2 - 0.8)).toBeLessThan(0.03); // +-1 sigma
    expect(sorted[0]).toBeGreaterThanOrEqual(100);
    expect(sorted.at(-1)).toBeLessThanOrEqual(228_000);
  });

  test('keeps a user the same whatever the scale', () => {
    const few = resolveShape({ users: 10, videos: 2 ** 20 }).lengths;
    expect(resolveShape({ users: 30, videos: 2 ** 20 }).lengths.slice(0, 10)).toEqual(few);
  });

  test('meets a wanted number of rows exactly', () => {
    const shape = resolveShape({ rows: 12_345, meanLength: 100 });
    expect(shape.lengths.reduce((sum, length) => sum + length, 0)).toBe(12_345);
    expect(shape.events).toBe(12_345);
    expect(Math.min(...shape.lengths)).toBeGreaterThan(0);
  });

  test.each([
    [{ users: 0 }, 'users is 0'],
    [{ rows: Number.NaN }, 'rows is NaN'],
    [{ videos: 3 }, 'videos is 3'],
    [{ videos: 2 ** 27 }, 'videos is 134217728'],
  ])('refuses %j', (options, message) => {
    expect(() => resolveShape(options)).toThrow(message);
  });

  test.each([{ scale: 1e-9 }, { rows: 0.5 }, { users: 3, meanLength: 0.01 }])('has events even for %j', options => {
    const { lengths } = resolveShape(options);
    expect(lengths.length).toBeGreaterThan(0);
    expect(Math.min(...lengths)).toBeGreaterThan(0);
  });
});

describe('the margin', () => {
  const shape = resolveShape({ users: 500, videos: 1000, meanLength: 100 });
  const catalogue = new VideoCatalogue(shape.videos, shape.seed);

  test('lies between popularity, Markov and the oracle, far apart', () => {
    const margin = measureMargin(catalogue, shape);
    expect(margin.users).toBe(500);
    expect(margin.markov).toBeGreaterThan(margin.popularity + 0.15);
    expect(margin.oracle).toBeGreaterThan(margin.markov + 0.2);
  });

  test('states how many users it was measured on', () => {
    const margin = measureMargin(catalogue, shape, 5_000);
    expect(margin.users).toBeLessThan(80);
    expect(margin.events).toBeLessThanOrEqual(5_000);
  });

  test('rests on an oracle whose better places are hit more often', () => {
    const events = new UserEvents(catalogue, 7);
    const hits = new Float64Array(10);
    let total = 0;
    for (let user = 0; user < 60; user++) {
      events.start(user, 80);
      for (let i = 0; i < 80; i++, total++) {
        events.arrive();
        const best = events.bestVideos(10);
        events.watch();
        const place = best.indexOf(events.video);
        if (place >= 0) hits[place]!++;
      }
    }
    for (const [better, worse] of [
      [0, 2],
      [2, 5],
      [5, 9],
    ] as const) {
      expect(hits[better]).toBeGreaterThan(hits[worse]!);
    }
    expect(hits[0]! / total).toBeGreaterThan(0.2);
  });
});

describe('CsvWriter', () => {
  test('writes numbers as they are, across buffers, under their name only when complete', () => {
    const path = join(folder, 'numbers.csv');
    const writer = new CsvWriter(path, 'a,b,c');
    const values = [
      0, 9, 10, 99, 100, 999, 1000, 123_456_789, 999_999_999, 1e9, 1_649_371_200_980, 999_999_999_999_999,
    ];
    for (let i = 0; i < 30_000; i++) {
      writer.number(values[i % values.length]!);
      writer.flag(i & 1);
      writer.text('x');
      writer.endRow();
    }
    expect(readdirSync(folder)).not.toContain('numbers.csv');
    writer.finish();
    const lines = readFileSync(path, 'latin1').trimEnd().split('\n');
    expect(lines.length).toBe(30_001);
    lines.slice(1).forEach((line, i) => {
      if (line !== `${values[i % values.length]},${i & 1},x`) throw new Error(`row ${i} is ${line}`);
    });
  });
});

describe('synthesize', () => {
  test('gives the same bytes for the same seed, others for another', async () => {
    const bytes = async (name: string, seed: number) => {
      await synthesize({ ...small, out: join(folder, name), seed, margin: false });
      return readFileSync(join(folder, name));
    };
    const first = await bytes('first.csv', 3);
    expect((await bytes('again.csv', 3)).equals(first)).toBe(true);
    expect((await bytes('other.csv', 4)).equals(first)).toBe(false);
  });

  test('writes one log: every column, users in order, local date and hour of the time', async () => {
    const path = join(folder, 'log.csv');
    const report = await synthesize({ ...small, out: path });
    const rows = readRows(path);
    expect(rows.length).toBe(report.events);
    expect(report.files).toEqual([{ path, rows: report.events }]);
    expect(new Set(rows.map(row => row[0])).size).toBe(40);
    expect(report.videosSeen).toBe(new Set(rows.map(row => row[1])).size);
    const wellFormed = rows.filter((row, i) => {
      const local = new Date(row[4]! + 8 * 3_600_000).toISOString();
      const date = Number(local.slice(0, 10).replaceAll('-', ''));
      const hourmin = Number(local.slice(11, 13)) * 100 + Number(local.slice(14, 16));
      const before = rows[i - 1] ?? [-1];
      const inOrder = row[0]! > before[0]! || (row[0] === before[0] && row[4]! >= before[4]!);
      return row.length === 19 && row.every(Number.isInteger) && row[2] === date && row[3] === hourmin && inOrder;
    });
    expect(wellFormed.length).toBe(rows.length);
  });

  test('writes the files of KuaiRand, cut by date, holding the same events as the one log', async () => {
    const out = join(folder, 'kuairand');
    const report = await synthesize({ ...small, meanLength: 300, videos: 2000, out, margin: false });
    expect(readdirSync(out).toSorted()).toEqual([
      'log_random_4_22_to_5_08_27k.csv',
      'log_standard_4_08_to_4_21_27k_part1.csv',
      'log_standard_4_08_to_4_21_27k_part2.csv',
      'log_standard_4_22_to_5_08_27k_part1.csv',
      'log_standard_4_22_to_5_08_27k_part2.csv',
      'user_features_27k.csv',
      'video_features_basic_27k.csv',
      'video_features_statistic_27k_part1.csv',
      'video_features_statistic_27k_part2.csv',
      'video_features_statistic_27k_part3.csv',
    ]);
    const part = (dates: string, n: number) => readRows(join(out, `log_standard_${dates}_27k_part${n}.csv`));
    const early = [...part('4_08_to_4_21', 1), ...part('4_08_to_4_21', 2)];
    const late = [...part('4_22_to_5_08', 1), ...part('4_22_to_5_08', 2)];
    expect(early.every(row => row[4]! < SECOND_HALF_START && row[17] === 0)).toBe(true);
    expect(late.every(row => row[4]! >= SECOND_HALF_START && row[17] === 0)).toBe(true);
    const random = readRows(join(out, 'log_random_4_22_to_5_08_27k.csv'));
    expect(random.length).toBeGreaterThan(0);
    expect(random.every(row => row[4]! >= SECOND_HALF_START && row[17] === 1)).toBe(true);

    await synthesize({ ...small, meanLength: 300, videos: 2000, out: join(folder, 'whole.csv'), margin: false });
    const whole = readRows(join(folder, 'whole.csv'));
    expect(report.events).toBe(whole.length);
    expect([...early, ...late].map(String).toSorted()).toEqual(whole.map(String).toSorted());
    expect(readFileSync(join(out, 'video_features_basic_27k.csv'), 'utf8').trimEnd().split('\n').length).toBe(2001);
    const statistics = [1, 2, 3].map(n => join(out, `video_features_statistic_27k_part${n}.csv`));
    const statisticRows = statistics.flatMap(file => {
      const [header, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
      const names = header!.split(',');
      expect([names[0], names[2], names[51]]).toEqual(['video_id', 'show_cnt', 'outsite_share_all_cnt']);
      return lines.map(line => line.split(',').map(Number));
    });
    expect(new Set(statisticRows.map(row => row[0])).size).toBe(2000);
    expect(statisticRows.every(row => row.length === 52 && row.every(value => value >= 0))).toBe(true);
    expect(readFileSync(join(out, 'user_features_27k.csv'), 'utf8').trimEnd().split('\n').length).toBe(41);
  });

  test('names the smaller variants without parts', async () => {
    const out = join(folder, 'pure');
    await synthesize({ ...small, out, variant: 'pure', margin: false });
    expect(readdirSync(out)).toContain('log_standard_4_08_to_4_21_pure.csv');
  });

  test('writes Parquet with the content of the CSV, and leaves no CSV behind', async () => {
    const [csv, parquet] = [join(folder, 'same.csv'), join(folder, 'same.parquet')];
    await synthesize({ ...small, out: csv, margin: false });
    await synthesize({ ...small, out: parquet, margin: false });
    const connection = await (await DuckDBInstance.create()).connect();
    const reader = await connection.runAndReadAll(`SELECT columns(*)::BIGINT FROM '${parquet}'`);
    expect(reader.columnNames()).toEqual([...LOG_COLUMNS]);
    expect(reader.getRows().map(row => row.map(Number))).toEqual(readRows(csv));
    expect(readdirSync(folder).filter(name => name.includes('parquet'))).toEqual(['same.parquet']);
    connection.closeSync();
  });

  test('leaves nothing behind when it is stopped', async () => {
    const out = join(folder, 'stopped');
    const stop = new AbortController();
    const options = { users: 200, videos: 20_000, meanLength: 1000, out, margin: false, signal: stop.signal };
    await expect(synthesize({ ...options, onProgress: () => stop.abort() })).rejects.toThrow('aborted');
    expect(readdirSync(out)).toEqual([]);
  });

  test('says what is wrong with an output', async () => {
    await expect(synthesize({ out: join(folder, 'x'), layout: 'log' })).rejects.toThrow('x does not end in .csv');
    await expect(synthesize({ ...small, out: join(folder, 'log.csv', 'y.csv') })).rejects.toThrow('cannot write');
  });
});
