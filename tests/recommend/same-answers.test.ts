// A history and a time give the same list with the same scores, to the bit, from library, command line and server.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { COMPONENTS, FEATURES } from '../../src/config/prior-weights.js';
import { namedWeights } from '../../src/eval/priors/weights.js';
import { type HistoryEvent, openRecommender, type Recommender } from '../../src/index.js';
import { type RunningServer, serve } from '../../src/server/serve.js';
import { SMALL_CONFIG, type SmallRun, smallRun } from '../support/small-run.js';

const MAIN = join(process.cwd(), 'dist', 'cli', 'main.js');
const USER = '7';
const K = 12;
const LIST = z.array(z.object({ item: z.string(), score: z.number() }));
type List = z.infer<typeof LIST>;

/** Given instead of fitted, so that the network, which reads the moment, has a weight beside them. */
const GIVEN = namedWeights(
  Float64Array.from(FEATURES, name => (name === 'model' ? 0.7 : 0.2)),
  new Float64Array(COMPONENTS.length).fill(1 / COMPONENTS.length),
);

describe.each([
  { name: 'auto', priors: 'auto', readsMoment: false }, // fitted ones may rank without the network
  { name: 'given', priors: GIVEN, readsMoment: true },
  { name: 'off', priors: 'off', readsMoment: true },
] as const)('priors: $name', ({ priors, readsMoment }) => {
  let small: SmallRun;
  let library: Recommender;
  let server: RunningServer;
  let history: HistoryEvent[];
  beforeAll(async () => {
    small = await smallRun({ ...SMALL_CONFIG, priors });
    library = openRecommender(small.run);
    server = await serve({ run: small.run, port: 0, reload: 0, grace: 0 });
    history = library.historyOf(USER);
  }, 300_000);
  afterAll(async () => {
    await server.close();
    library.close();
    small[Symbol.dispose]();
  });

  const command = (...flags: string[]): List => {
    const words = ['recommend', small.run, '-k', String(K), '--json', ...flags];
    return LIST.parse(JSON.parse(execFileSync(process.execPath, [MAIN, ...words], { encoding: 'utf8' })));
  };
  const served = async (body: object): Promise<List> => {
    const response = await fetch(`${server.url}/v1/recommend`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ k: K, ...body }),
    });
    return z.object({ items: LIST }).parse(await response.json()).items;
  };
  const listed = async (at?: number): Promise<List> => LIST.parse(await library.recommend(history, { k: K, at }));

  test('at a moment after the last event', async () => {
    const file = join(small.folder, 'history.json');
    writeFileSync(file, JSON.stringify(history));
    const lists: List[] = [];
    for (const hours of [1, 1000]) {
      const at = history.at(-1)!.time! + hours * 3_600_000;
      const wanted = await listed(at);
      expect(wanted).toHaveLength(K);
      expect(command('--user', USER, '--at', String(at))).toEqual(wanted);
      expect(command('--history-file', file, '--at', new Date(at).toISOString())).toEqual(wanted);
      expect(await served({ user: USER, at })).toEqual(wanted);
      expect(await served({ history, at })).toEqual(wanted);
      lists.push(wanted);
    }
    expect(readsMoment && isDeepStrictEqual(lists[0], lists[1])).toBe(false); // a caller that forgets the moment would be noticed
  }, 60_000);

  test('now, where nobody names a moment', async () => {
    const wanted = await listed();
    expect(command('--user', USER)).toEqual(wanted);
    expect(await served({ user: USER })).toEqual(wanted);
    expect(await served({ history })).toEqual(wanted);
  }, 60_000);

  test('in the file of all users', async () => {
    const at = history.at(-1)!.time! + 3_600_000;
    const out = join(small.folder, 'all.jsonl');
    const words = ['recommend', small.run, '--all', '--out', out, '-k', String(K), '--at', String(at)];
    execFileSync(process.execPath, [MAIN, ...words]);
    const rows = readFileSync(out, 'utf8').trim().split('\n');
    const own = rows.map(row => z.looseObject({ user: z.string() }).parse(JSON.parse(row)));
    const found = LIST.parse(own.filter(({ user }) => user === USER));
    const wanted = await listed(at);
    expect(found.map(({ item }) => item)).toEqual(wanted.map(({ item }) => item));
    expect(found.map(({ score }) => Math.fround(score))).toEqual(wanted.map(({ score }) => Math.fround(score)));
  }, 60_000);
});
