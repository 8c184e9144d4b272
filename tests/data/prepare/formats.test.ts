// The same log in every format gives the same store; the presets read files named and laid out as the downloads are.
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Engine, literal } from '../../../src/data/prepare/engine.js';
import { presetOptions } from '../../../src/data/prepare/presets.js';
import { SafetensorsFile } from '../../../src/util/safetensors.js';
import { Workbench, contents } from './workbench.js';

const bench = new Workbench();
let engine: Engine;
beforeAll(async () => {
  engine = await Engine.open({ scratch: bench.folder, memoryBytes: 256e6, threads: 1 });
});
afterAll(() => {
  engine.close();
  bench.remove();
});

const ROWS = Array.from(
  { length: 60 },
  (_, i) => [`u${i % 5}`, `i${(i * i) % 13}`, 1_650_000_000 + ((i * 7) % 20)] as const,
);
const parquet = async (name: string, query: string): Promise<string> => {
  const path = join(bench.folder, name);
  await engine.run(`COPY (${query}) TO ${literal(path)} (FORMAT parquet)`);
  return path;
};

describe('formats', () => {
  it('give the same fingerprint', async () => {
    const lines = (separator: string, rows = ROWS) => rows.map(row => row.join(separator)).join('\n');
    const plain = bench.write('log.csv', `user,item,time\n${lines(',')}\n`);
    const { store } = await bench.build({ files: [plain] });
    bench.write('part-1.csv', `user,item,time\n${lines(',', ROWS.slice(0, 17))}\n`);
    bench.write('part-2.csv', `user,item,time\n${lines(',', ROWS.slice(17))}`);
    const objects = ROWS.map(([user, item, time]) =>
      JSON.stringify({ time, text: 'a "quoted", one', user, item }),
    ).join('\n');
    const date = "strftime(make_timestamp(time * 1000000), '%Y-%m-%d %H:%M:%S')";
    const variants = {
      gzip: { files: [bench.write('log.csv.gz', gzipSync(`user,item,time\n${lines(',')}\n`))] },
      tabs: { files: [bench.write('log.tsv', `user\titem\ttime\n${lines('\t')}\n`)] },
      'no header': {
        files: [bench.write('bare.dat', `${lines('::')}\n`)],
        csv: { delimiter: '::', header: false, names: ['user', 'item', 'time'] },
      },
      quoted: {
        files: [
          bench.write(
            'quoted.csv',
            `"user","item","time"\n${ROWS.map(([u, i, t]) => `"${u}","${i}",${t}`).join('\n')}\n`,
          ),
        ],
      },
      'Windows line ends': {
        files: [bench.write('crlf.csv', `user,item,time\r\n${lines(',').replaceAll('\n', '\r\n')}\r\n`)],
      },
      'a glob': { files: [join(bench.folder, 'part-?.csv')] },
      'JSON lines': { files: [bench.write('log.jsonl', objects)] },
      'gzipped JSON lines': { files: [bench.write('log.json.gz', gzipSync(objects))] },
      Parquet: { files: [await parquet('log.parquet', `SELECT * FROM ${literal(plain)}`)] },
    };
    const fingerprints: Record<string, string> = {};
    for (const [name, input] of Object.entries(variants))
      fingerprints[name] = (await bench.build(input)).store.fingerprint;
    expect(fingerprints).toEqual(Object.fromEntries(Object.keys(variants).map(name => [name, store.fingerprint])));
    const dates = await bench.build({
      files: [await parquet('dates.parquet', `SELECT user, item, ${date} AS time FROM ${literal(plain)}`)],
    });
    expect(dates.store.index.time.kind).toBe('ms');
    expect(contents(dates.store)).toEqual(contents(store).map(event => ({ ...event, time: event.time * 1000 })));
  });

  it.each([
    ['1650000000.25', 'ms', 1_650_000_000_250],
    ['1650000000250', 'ms', 1_650_000_000_250],
    ['1650000000250000', 'us', 1_650_000_000_250_000],
    ['2022-04-15T07:20:00.250+02:00', 'ms', 1_650_000_000_250],
    ['2022-04-15 05:20:00.250', 'ms', 1_650_000_000_250],
    ['17', 'order', Number.NaN],
  ])('takes the time %s for %s', async (time, kind, stored) => {
    const { store } = await bench.build({
      files: [bench.write('time.csv', `user,item,time\na,b,${time}\nc,d,${time}\n`)],
    });
    expect(store.index.time.kind).toBe(kind);
    expect(store.hasTime).toBe(kind !== 'order');
    expect(contents(store)[0]?.time).toEqual(stored);
  });

  it('keeps actions, ratings and extra columns', async () => {
    const file = bench.write(
      'columns.csv',
      'user,item,time,event_type,rating,price,shelf\na,b,2,buy,4.5,,7\na,c,1,view,1,2.5,8\n',
    );
    const { store } = await bench.build({ files: [file], extra: ['price', 'shelf'] });
    expect(store.index.action).toEqual({ kind: 'label', labels: ['buy', 'view'] });
    expect([...(store.sequence(0).actions ?? [])]).toEqual([1, 0]);
    expect(store.index.columns.map(({ name, dtype, missing }) => [name, dtype, missing])).toEqual([
      ['item', 'I32', 0],
      ['action', 'I32', 0],
      ['rating', 'F32', 0],
      ['price', 'F32', 1],
      ['shelf', 'I32', 0],
    ]);
    const shard = new SafetensorsFile(join(store.folder, 'events-00000.safetensors'));
    expect([...shard.read('rating', 'F32')]).toEqual([1, 4.5]);
    expect([...shard.read('price', 'F32')]).toEqual([2.5, Number.NaN]);
    expect([...shard.read('shelf', 'I32')]).toEqual([8, 7]);
    shard.close();
  });

  it('lets the catalogue be larger than what occurs', async () => {
    const files = [bench.write('seen.csv', 'user,item,time\n1,30,1\n1,10,2\n2,10,3\n')];
    const itemsFile = bench.write('all-items.csv', 'item,title\n40,d\n10,a\n20,b\n30,c\n');
    const { store } = await bench.build({ files, itemsFile, catalogue: 9 });
    expect(store.items).toBe(9);
    expect([0, 1, 2, 3].map(dense => store.originalItem(dense))).toEqual(['10', '30', '20', '40']);
    expect(() => store.originalItem(4)).toThrow(/outside 0..3/);
    const smaller = await bench.build({ files });
    expect(smaller.store.fingerprint).not.toBe(store.fingerprint);
  });
});

const KUAIRAND =
  'user_id,video_id,date,hourmin,time_ms,is_click,is_like,is_follow,is_comment,is_forward,is_hate,long_view,play_time_ms,duration_ms,profile_stay_time,comment_stay_time,is_profile_enter,is_rand,tab';

describe('presets', () => {
  it('read KuaiRand: all parts, random exposure apart, action bits, features', async () => {
    const event = (user: number, video: number, ms: number, flags: string) =>
      `${user},${video},20220408,800,${1_650_000_000_000 + ms},${flags},100,200,0,0,0,0,1`;
    const log = (...events: string[]) => `${[KUAIRAND, ...events].join('\n')}\n`;
    bench.write('kuairand/log_standard_4_22_to_5_08_27k_part1.csv', log(event(0, 7, 9, '1,0,0,0,0,0,1')));
    bench.write('kuairand/log_standard_4_08_to_4_21_27k_part2.csv', log(event(3, 9, 2, '0,1,0,0,0,0,0')));
    bench.write('kuairand/log_standard_4_08_to_4_21_27k_part1.csv', log(event(0, 9, 1, '0,0,0,0,0,0,0')));
    bench.write('kuairand/log_random_4_22_to_5_08_27k.csv', log(event(0, 5, 5, '1,1,1,1,1,1,1')));
    bench.write(
      'kuairand/user_features_27k.csv',
      'user_id,user_active_degree,register_days\n3,full_active,12\n0,UNKNOWN,\n8,x,1\n',
    );
    bench.write('kuairand/video_features_basic_27k.csv', 'video_id,video_duration\n7,1000\n');
    const folder = join(bench.folder, 'kuairand');
    const { store, report } = await bench.build({
      files: [],
      ...presetOptions('kuairand-27k', [folder], { keepAll: true }),
    });
    expect(report.files.length).toBe(3);
    expect(contents(store).map(({ user, item }) => [user, item])).toEqual([
      ['0', '9'],
      ['0', '7'],
      ['3', '9'],
    ]);
    expect(store.index.action?.labels.slice(0, 2)).toEqual(['is_click', 'is_like']);
    expect([...(store.sequence(0).actions ?? [])]).toEqual([0, 0b1000001]);
    const [users, videos] = store.index.features;
    expect(users?.columns).toEqual([
      { name: 'user_active_degree', dtype: 'I32', labels: ['UNKNOWN', 'full_active', 'x'] },
      { name: 'register_days', dtype: 'F32', labels: [] },
    ]);
    const userTable = new SafetensorsFile(join(store.folder, users?.file ?? ''));
    expect([...userTable.read('user_active_degree', 'I32')]).toEqual([0, 1]);
    expect([...userTable.read('register_days', 'F32')]).toEqual([Number.NaN, 12]);
    userTable.close();
    const videoTable = new SafetensorsFile(join(store.folder, videos?.file ?? ''));
    expect([...videoTable.read('video_duration', 'F32')]).toEqual([Number.NaN, 1000]);
    videoTable.close();

    const random = await bench.build({ files: [], ...presetOptions('kuairand-27k', [folder], { exposure: 'random' }) });
    expect(contents(random.store).map(({ item }) => item)).toEqual(['5']);
  });

  it('filter KuaiRand as the paper does, and say what each step removed', async () => {
    const row = (user: number, video: number, ms: number, flags: string) =>
      `${user},${video},20220408,800,${1_650_000_000_000 + ms},${flags},100,200,0,0,0,0,1`;
    const [click, longView, liked] = ['1,0,0,0,0,0,0', '0,0,0,0,0,0,1', '0,1,0,0,0,0,0'];
    const [nothing, hate] = ['0,0,0,0,0,0,0', '1,0,0,0,0,1,1'];
    const rows: string[] = [];
    // Five users with five videos hold together; what else there is must go.
    for (let user = 0; user < 5; user++) {
      for (let video = 0; video < 5; video++) {
        rows.push(row(user, video, 10 * rows.length, [click, longView, liked][(user + video) % 3]!));
      }
      rows.push(row(user, 100 + user, 10 * rows.length, hate), row(user, 0, 10 * rows.length, nothing));
    }
    // Five events of video 50, but of one user only; user 9 has four events.
    for (let i = 0; i < 5; i++) rows.push(row(0, 50, 10 * rows.length, click));
    for (let video = 0; video < 4; video++) rows.push(row(9, video, 10 * rows.length, click));
    const file = 'kuairand-filters/log_standard_4_08_to_4_21_pure.csv';
    bench.write(file, `${[KUAIRAND, ...rows].join('\n')}\n`);
    const folder = join(bench.folder, 'kuairand-filters');
    const filtered = await bench.build({ files: [], ...presetOptions('kuairand-pure', [folder]) });
    expect(filtered.report.filters).toEqual([
      { name: 'without is_hate', removed: 5, left: 39 },
      {
        name: 'with any of is_click, is_like, is_follow, is_comment, is_forward, long_view',
        removed: 5,
        left: 34,
      },
      { name: 'at least 5 users per item, 5 events per user', removed: 9, left: 25 },
    ]);
    expect(filtered.store.users).toBe(5);
    expect(new Set(contents(filtered.store).map(({ item }) => item))).toEqual(new Set(['0', '1', '2', '3', '4']));
    const whole = await bench.build({ files: [], ...presetOptions('kuairand-pure', [folder], { keepAll: true }) });
    expect([whole.report.filters, whole.store.events]).toEqual([[], rows.length]);
  });

  it('read a feature table that comes in parts as one', async () => {
    const log = bench.write('parts.csv', 'user,item,time\n1,30,1\n1,10,2\n2,20,3\n');
    const parts = [
      bench.write('parts-1.csv', 'item,price,kind\n10,1.5,a\n'),
      bench.write('parts-2.csv', 'item,price,kind\n30,2,b\n20,,a\n'),
    ];
    const { store } = await bench.build({ files: [log], features: [{ of: 'item', key: 'item', files: parts }] });
    expect(store.index.features).toHaveLength(1);
    const table = new SafetensorsFile(join(store.folder, store.index.features[0]!.file));
    const ids = [0, 1, 2].map(dense => store.originalItem(dense));
    const of = (values: ArrayLike<number>) => Object.fromEntries(ids.map((id, i) => [id, values[i]]));
    expect(of(table.read('price', 'F32'))).toEqual({ 10: 1.5, 20: Number.NaN, 30: 2 });
    expect(of(table.read('kind', 'I32'))).toEqual({ 10: 0, 20: 0, 30: 1 });
    table.close();
  });

  it.each([
    ['ml-1m', 'ratings.dat', '1::1193::5::978300760\n1::661::3::978302109\n'],
    ['ml-100k', 'u.data', '1\t1193\t5\t978300760\n1\t661\t3\t978302109\n'],
    ['ml-20m', 'ratings.csv', 'userId,movieId,rating,timestamp\n1,1193,5.0,978300760\n1,661,3.0,978302109\n'],
    ['amazon-2018', 'Books.csv', '1193,1,5.0,978300760\n661,1,3.0,978302109\n'],
    [
      'amazon-2023',
      'Books.csv',
      'user_id,parent_asin,rating,timestamp\n1,1193,5.0,978300760000\n1,661,3.0,978302109000\n',
    ],
    [
      'amazon-2014',
      'reviews_Books_5.json',
      '{"reviewerID": "1", "asin": "1193", "overall": 5.0, "unixReviewTime": 978300760}\n{"reviewerID": "1", "asin": "661", "overall": 3.0, "unixReviewTime": 978302109}\n',
    ],
  ])('read %s from its folder', async (name, file, content) => {
    bench.write(`${name}/${file}`, content);
    if (name === 'ml-1m') {
      const movies = '1193::Caf\u00e9 (1975)::Drama\n661::James (1996)::Animation\n2::Unseen\u00e9 (1995)::Comedy\n';
      bench.write(`${name}/movies.dat`, Buffer.from(movies, 'latin1'));
    }
    const { store } = await bench.build({ files: [], ...presetOptions(name, [join(bench.folder, name)]) });
    expect(contents(store).map(({ item }) => item)).toEqual(['1193', '661']);
    expect(store.hasTime).toBe(true);
    expect(store.index.columns.map(column => column.name)).toContain('rating');
    expect(store.items).toBe(name === 'ml-1m' ? 3 : 2);
  });

  it('read Yambda-style Parquet', async () => {
    const query = "SELECT 1::UINTEGER AS uid, 5::UINTEGER AS timestamp, 9::UINTEGER AS item_id, 'listen' AS event_type";
    const file = await parquet('multi_event.parquet', query);
    const { store } = await bench.build({ files: [], ...presetOptions('yambda', [file]) });
    expect(contents(store)).toEqual([{ user: '1', item: '9', time: 5 }]);
    expect(store.index.action?.labels).toEqual(['listen']);
  });

  it('say which files they look for', () => {
    expect(() => presetOptions('kuairand-1k', [bench.folder])).toThrow(/has no file named like \^log_standard/);
    expect(() => presetOptions('ml-1m', [bench.folder], { exposure: 'random' })).toThrow(/no log of random exposure/);
    expect(() => presetOptions('netflix', [])).toThrow(/no preset 'netflix'/);
  });
});
