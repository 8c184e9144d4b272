// Every route with what it promises: answers are the library's, refusals name what is wrong.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openRecommender, type Recommender } from '../../src/index.js';
import {
  EMBED_ANSWER,
  EVENTS_ANSWER,
  ITEMS_ANSWER,
  MODELS_ANSWER,
  PROBLEM,
  RECOMMEND_ANSWER,
} from '../../src/server/schemas.js';
import { type RunningServer, serve } from '../../src/server/serve.js';
import { type SmallRun, smallRun } from '../support/small-run.js';

let small: SmallRun;
let server: RunningServer;
let library: Recommender;

beforeAll(async () => {
  small = await smallRun();
  library = openRecommender(small.run);
  const rows = Array.from({ length: library.items }, (_, id) => {
    const item = library.originalItem(id);
    return `${item},Film ${item},${id % 2 === 0 ? 'comedy' : 'drama'}`;
  });
  const file = join(small.folder, 'items.csv');
  writeFileSync(file, `item_id,title,genre\n${rows.join('\n')}\n`);
  server = await serve({
    run: small.run,
    port: 0,
    items: { file },
    events: join(small.folder, 'events'),
    bodyLimit: 20_000,
    reload: 0,
    grace: 0,
  });
}, 300_000);
afterAll(async () => {
  await server.close();
  library.close();
  small[Symbol.dispose]();
});

async function post<T>(path: string, body: unknown, schema: z.ZodType<T>, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    body: text,
    headers: { 'content-type': 'application/json', ...headers },
  });
  return { status: response.status, headers: response.headers, body: schema.parse(await response.json()) };
}

describe('answers', () => {
  it('recommends to a user of the log what the library does, with titles', async () => {
    const { status, body } = await post('/v1/recommend', { user: 3, k: 5, at: 2e9 }, RECOMMEND_ANSWER);
    expect(status).toBe(200);
    const expected = await library.recommend(library.historyOf(3), { k: 5, at: 2e9 });
    expect(body.items.map(({ item, score }) => ({ item, score }))).toEqual(expected);
    expect(body.items[0]).toMatchObject({
      title: `Film ${body.items[0]!.item}`,
      metadata: { genre: expect.any(String) },
    });
    expect(body).toMatchObject({ basis: 'model', model: `run@${server.model.version}` });
    expect(body.recommendation_id).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('recommends to a history, with lists, a filter and a moment', async () => {
    const history = library.historyAt(7);
    const asked = { history, k: 90, at: 2e9 };
    const { body } = await post(
      '/v1/recommend',
      { ...asked, exclude: 'none', filter: { genre: 'comedy' } },
      RECOMMEND_ANSWER,
    );
    expect(body.items.length).toBeGreaterThan(10);
    expect(body.items.every(({ metadata }) => metadata?.['genre'] === 'comedy')).toBe(true);
    const [first, second] = body.items.map(({ item }) => item);
    const without = await post('/v1/recommend', { ...asked, exclude: [first, second] }, RECOMMEND_ANSWER);
    const items = without.body.items.map(({ item }) => item);
    for (const gone of [first, second, ...history.map(({ item }) => item)]) expect(items).not.toContain(gone);
    const allowed = await post(
      '/v1/recommend',
      { ...asked, exclude: 'none', allow: [second, first, 'x'] },
      RECOMMEND_ANSWER,
    );
    expect(allowed.body.items.map(({ item }) => item)).toEqual([first, second]);
  });

  it('answers an empty history by popularity, and says so', async () => {
    const { body } = await post('/v1/recommend', { history: [{ item: 'never seen' }], k: 3 }, RECOMMEND_ANSWER);
    expect(body.basis).toBe('popularity');
    expect(body.items).toHaveLength(3);
  });

  it('ranks given items', async () => {
    const items = [1, 2, 3, 4].map(id => library.originalItem(id));
    const { body } = await post('/v1/rank', { user: 3, items, at: 2e9 }, ITEMS_ANSWER);
    const expected = await library.rank(library.historyOf(3), items, { at: 2e9 });
    expect(body.items.map(({ item, score }) => ({ item, score }))).toEqual(expected);
  });

  it('finds similar items and gives vectors', async () => {
    const item = library.originalItem(5);
    const near = await post('/v1/similar', { item, k: 4 }, ITEMS_ANSWER);
    expect(near.body.items.map(({ item, score }) => ({ item, score }))).toEqual(await library.similar(item, { k: 4 }));
    const { body } = await post(
      '/v1/embed',
      { users: [3], items: [item], histories: [library.historyAt(1)], at: 2e9 },
      EMBED_ANSWER,
    );
    expect(body.dimension).toBe(16);
    expect(body.users![0]!.vector).toEqual(
      Array.from((await library.embedHistories([library.historyOf(3)], { at: 2e9 }))[0]!),
    );
    expect(body.items![0]!.vector).toEqual(Array.from((await library.embedItems()).subarray(5 * 16, 6 * 16)));
    expect(body.histories![0]!.vector).toHaveLength(16);
  });

  it('remembers events: of new users and of known ones, once per key', async () => {
    const [a, b] = [library.originalItem(10), library.originalItem(11)];
    const nobody = await post('/v1/recommend', { user: 'newcomer' }, PROBLEM);
    expect(nobody.status).toBe(404);
    const sent = { user: 'newcomer', events: [{ item: a, time: 1_700_000_000 }] };
    const once = { 'idempotency-key': 'one' };
    expect((await post('/v1/events', sent, EVENTS_ANSWER, once)).body).toEqual({ accepted: 1, duplicate: false });
    expect((await post('/v1/events', sent, EVENTS_ANSWER, once)).body).toEqual({ accepted: 0, duplicate: true });
    expect((await post('/v1/events', { ...sent, key: 'one', events: [{ item: b }] }, PROBLEM)).status).toBe(409);
    const { body } = await post('/v1/recommend', { user: 'newcomer', k: 3, at: 2e9 }, RECOMMEND_ANSWER);
    const expected = await library.recommend([{ item: a, time: 1_700_000_000 }], { k: 3, at: 2e9 });
    expect(body.items.map(({ item, score }) => ({ item, score }))).toEqual(expected);
    const logged = library.historyOf(3);
    const time = logged.at(-1)!.time! + 1000;
    await post('/v1/events', { user: 3, events: [{ item: b, time }] }, EVENTS_ANSWER);
    const extended = await post('/v1/recommend', { user: 3, k: 3, at: 2e9 }, RECOMMEND_ANSWER);
    const whole = await library.recommend([...logged, { item: b, time }], { k: 3, at: 2e9 });
    expect(extended.body.items.map(({ item, score }) => ({ item, score }))).toEqual(whole);
  });
});

describe('refusals', () => {
  it.each([
    ['no body', '', 400],
    ['broken JSON', '{', 400],
    ['neither user nor history', {}, 400],
    ['both', { user: 1, history: [] }, 400],
    ['an unknown field', { user: 1, count: 3 }, 400],
    ['k of 0', { user: 1, k: 0 }, 400],
    ['an unknown user', { user: 'nobody' }, 404],
    ['an unknown column', { user: 1, filter: { colour: 'red' } }, 400],
    ['a large body', { user: 'x'.repeat(30_000) }, 413],
  ])('%s', async (_what, body, expected) => {
    const { status, body: problem } = await post('/v1/recommend', body, PROBLEM);
    expect(status).toBe(expected);
    expect(problem.error.message).not.toBe('');
  });

  it('an unknown item, an unknown route', async () => {
    expect((await post('/v1/similar', { item: 'no such' }, PROBLEM)).status).toBe(404);
    expect((await post('/v1/rank', { user: 3, items: ['no such'] }, PROBLEM)).status).toBe(404);
    expect((await post('/v1/nothing', {}, PROBLEM)).status).toBe(404);
  });

  it('without the token, and to the world without one', async () => {
    const locked = await serve({ run: small.run, port: 0, token: 'secret', reload: 0, grace: 0 });
    const get = (path: string, token?: string) =>
      fetch(`${locked.url}${path}`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    expect((await get('/v1/models')).status).toBe(401);
    expect((await get('/v1/models', 'guess')).status).toBe(401);
    expect((await get('/v1/models', 'secret')).status).toBe(200);
    expect((await get('/metrics')).status).toBe(401);
    expect((await get('/healthz')).status).toBe(200);
    const events = {
      method: 'POST',
      body: '{"user":1,"events":[{"item":1}]}',
      headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
    };
    expect((await fetch(`${locked.url}/v1/events`, events)).status).toBe(400); // started without --events
    await locked.close();
    await expect(serve({ run: small.run, host: '0.0.0.0', port: 0 })).rejects.toThrow('no token');
    await expect(serve({ run: small.run, port: Number(new URL(server.url).port) })).rejects.toThrow('is in use');
  });
});

describe('operation', () => {
  it('tells health, models, metrics and the OpenAPI document', async () => {
    const get = async (path: string) => await fetch(`${server.url}${path}`);
    const paths = ['/healthz', '/readyz', '/v2/health/live', '/v2/health/ready', '/v2/models/run/ready', '/v2'];
    const statuses = await Promise.all(paths.map(async path => [path, (await get(path)).status]));
    expect(statuses).toEqual(paths.map(path => [path, 200]));
    const { models } = MODELS_ANSWER.parse(await (await get('/v1/models')).json());
    expect(models[0]).toMatchObject({
      name: 'run',
      kind: 'hstu',
      items: library.items,
      item_columns: ['title', 'genre'],
    });
    const metrics = await (await get('/metrics')).text();
    expect(metrics).toMatch(/turbogr_requests_total\{route="\/v1\/recommend",status="200"\} \d+/);
    expect(metrics).toContain(`turbogr_model_info{name="run",version="${server.model.version}"} 1`);
    const document = z
      .object({ openapi: z.string(), paths: z.record(z.string(), z.unknown()) })
      .parse(await (await get('/openapi.json')).json());
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([
        '/v1/recommend',
        '/v1/rank',
        '/v1/similar',
        '/v1/embed',
        '/v1/events',
        '/v1/models',
        '/healthz',
      ]),
    );
  });
});
