// The routes, as a Fastify application: `POST /v1/...` for answers, health and metrics for operators, and the OpenAPI 3.1
// document generated from the schemas.

import { timingSafeEqual } from 'node:crypto';
import swagger from '@fastify/swagger';
import Fastify, { type FastifyInstance } from 'fastify';
import { jsonSchemaTransform, serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { VERSION } from '../native/platform.js';
import { UserError } from '../util/errors.js';
import { canonicalJson, sha256 } from '../util/hash.js';
import { Answers } from './answers.js';
import type { EventJournal } from './event-journal.js';
import { ServerMetrics } from './metrics.js';
import type { ModelHost } from './model-host.js';
import { problemOf, sendProblem } from './problems.js';
import { quickValidator } from './quick-validator.js';
import * as schemas from './schemas.js';

export interface AppOptions {
  host: ModelHost;
  journal: EventJournal | undefined;
  metrics: ServerMetrics;
  /** Whether new requests are accepted; false while draining. */
  ready: () => boolean;
  /** Whether connections are closed with their next answer. */
  leaving: () => boolean;
  /** Required as `Authorization: Bearer ...`, except for health. */
  token?: string | undefined;
  /** Maximum time in milliseconds that a request waits for its batch. */
  timeout: number;
  /** Maximum body size in bytes. */
  bodyLimit: number;
  onBug: (error: Error) => void;
}

const OPEN = new Set(['/healthz', '/readyz', '/v2/health/live', '/v2/health/ready']);
const HEALTH = z.object({ status: z.string() });
const PROBLEMS = { '4xx': schemas.PROBLEM, '5xx': schemas.PROBLEM };

export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { host, journal, metrics, bodyLimit } = options;
  const answers = new Answers({ host, journal, timeout: options.timeout });
  const app = Fastify({ bodyLimit, return503OnClosing: false, forceCloseConnections: 'idle', requestTimeout: 30_000 });
  app.setValidatorCompiler(quickValidator);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler((error: Error, _request, reply) => {
    const problem = problemOf(error);
    if (problem.status >= 500 && problem.code === 'internal') options.onBug(error);
    return sendProblem(reply, problem);
  });
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, {
      status: 404,
      code: 'no-route',
      message: `there is no ${request.method} ${request.url.slice(0, 200)}`,
      remedy: 'See /openapi.json.',
    }),
  );
  const expected = options.token === undefined ? undefined : Buffer.from(sha256(options.token));
  app.addHook('onRequest', async (request, reply) => {
    if (options.leaving()) void reply.header('connection', 'close');
    if (!expected || OPEN.has(request.routeOptions.url ?? '')) return;
    const [, given = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (timingSafeEqual(Buffer.from(sha256(given)), expected)) return;
    void reply.header('www-authenticate', 'Bearer');
    await sendProblem(reply, { status: 401, code: 'unauthorized', message: 'a bearer token is required' });
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none';
    metrics.requests.inc({ route, status: reply.statusCode });
    metrics.seconds.observe({ route }, reply.elapsedTime / 1000);
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'TurboGR', description: 'Recommendations of a trained run.', version: VERSION },
      ...(expected && {
        components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
        security: [{ bearer: [] }],
      }),
    },
    transform: jsonSchemaTransform,
  });
  await app.register(async scope => routes(scope, { ...options, answers }));
  return app;
}

function routes(
  scope: FastifyInstance,
  { answers, host, journal, metrics, ready }: AppOptions & { answers: Answers },
): void {
  const app = scope.withTypeProvider<ZodTypeProvider>();
  const answering = <B extends z.ZodType, R extends z.ZodType>(summary: string, body: B, response: R) => ({
    schema: { summary, body, response: { 200: response, ...PROBLEMS } },
  });
  app.post(
    '/v1/recommend',
    answering('The best next items.', schemas.RECOMMEND_REQUEST, schemas.RECOMMEND_ANSWER),
    ({ body }) => answers.recommend(body),
  );
  app.post('/v1/rank', answering('Given items, best first.', schemas.RANK_REQUEST, schemas.ITEMS_ANSWER), ({ body }) =>
    answers.rank(body),
  );
  app.post('/v1/similar', answering('Similar items.', schemas.SIMILAR_REQUEST, schemas.ITEMS_ANSWER), ({ body }) =>
    answers.similar(body),
  );
  app.post(
    '/v1/embed',
    answering('Vectors whose dot product is the score.', schemas.EMBED_REQUEST, schemas.EMBED_ANSWER),
    ({ body }) => answers.embed(body),
  );

  app.post(
    '/v1/events',
    answering(
      "Append to a user's history; acknowledged when it is on the disk.",
      schemas.EVENTS_REQUEST,
      schemas.EVENTS_ANSWER,
    ),
    async ({ body, headers }) => {
      if (!journal) throw new UserError('no-events', 'this server takes no events', 'Start it with --events <folder>.');
      const header = headers['idempotency-key'];
      const key = body.key ?? (typeof header === 'string' && header !== '' ? header.slice(0, 200) : undefined);
      const now = host.model.recommender.currentTime();
      const events = body.events.map(({ item, time, action }) => ({
        item: String(item),
        ...(time === undefined ? now !== undefined && { time: now } : { time: Math.trunc(time) }),
        ...(action !== undefined && { action }),
      }));
      const once =
        key === undefined ? {} : { key, content: sha256(canonicalJson({ user: body.user, events: body.events })) };
      const { duplicate } = await journal.append({ user: String(body.user), events, received: Date.now(), ...once });
      if (!duplicate) metrics.events.inc(events.length);
      return { accepted: duplicate ? 0 : events.length, duplicate };
    },
  );

  app.get('/v1/models', { schema: { summary: 'What is served.', response: { 200: schemas.MODELS_ANSWER } } }, () => {
    const { name, version, recommender, loadedAt } = host.model;
    const { users, items, dimension } = recommender;
    const kind = recommender.run.config.model.kind;
    return {
      models: [
        {
          name,
          version,
          kind,
          users,
          items,
          dimension,
          item_columns: recommender.columnNames(),
          loaded_at: loadedAt.toISOString(),
        },
      ],
    };
  });

  const health = (summary: string) => ({ schema: { summary, response: { 200: HEALTH, 503: HEALTH } } });
  const live = () => ({ status: 'ok' });
  for (const path of ['/healthz', '/v2/health/live']) app.get(path, health('Whether the process is alive.'), live);
  for (const path of ['/readyz', '/v2/health/ready', '/v2/models/:name/ready']) {
    app.get(path, health('Whether new requests are accepted.'), async (_request, reply) => {
      if (ready()) return { status: 'ok' };
      void reply.status(503);
      return { status: 'draining' };
    });
  }
  app.get('/v2', { schema: { hide: true } }, () => ({ name: 'turbogr', version: VERSION, extensions: [] }));
  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) =>
    reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  );
  app.get('/openapi.json', { schema: { hide: true } }, () => scope.swagger());
}
