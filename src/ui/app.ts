// The dashboard's routes: its files, runs as JSON, and a stream of server-sent events per open page. Read-only; accepts only
// this machine's host names, against DNS rebinding.

import type { ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { existsSync } from 'node:fs';
import { comparePaired, type PairedReport } from '../eval/paired.js';
import { readRanks } from '../eval/rank-file.js';
import { UserError } from '../util/errors.js';
import { compareViews } from '../view/compare.js';
import { reportPage } from '../view/report-page.js';
import type { RunView, RunViewer } from '../view/run-view.js';
import { type IndexedRun, RunIndex } from './run-index.js';
import { type StoreFacts, storeFacts } from './store-facts.js';
import { webFiles } from './web-files.js';

export interface UiAppOptions {
  /** Runs, or folders with runs. */
  folders: readonly string[];
  /** Milliseconds between polls of a log that a page follows. */
  interval?: number;
}

/** An entry of the list of runs. */
export type RunSummary = Pick<
  RunView,
  | 'path'
  | 'state'
  | 'model'
  | 'step'
  | 'totalSteps'
  | 'epoch'
  | 'epochs'
  | 'metric'
  | 'started'
  | 'updated'
  | 'fingerprint'
> & { id: string; best: number | null; loss: number | null; alerts: RunView['alerts'] };

const POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'";
/** Interval of keep-alive comments, in polls. */
const QUIET_LOOKS = 10;

export async function buildUi({ folders, interval = 1000 }: UiAppOptions): Promise<FastifyInstance> {
  const index = new RunIndex(folders);
  const files = webFiles();
  const stores = new Map<string, StoreFacts>();
  const streams = new Set<ServerResponse>();
  const app = Fastify({ forceCloseConnections: true });

  app.addHook('onRequest', async (request, reply) => {
    void reply.headers({
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    });
    if (/^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(request.headers.host ?? '')) return;
    await reply.status(403).send({ code: 'foreign-host', message: 'the dashboard answers this machine only' });
  });
  app.addHook('preClose', async () => {
    for (const stream of streams) stream.end();
  });
  app.setErrorHandler((error: Error, _request, reply) => {
    const isUserError = error instanceof UserError;
    const { code, remedy } = isUserError ? error : { code: 'internal', remedy: '' };
    return reply.status(isUserError ? 409 : 500).send({ code, message: error.message, remedy });
  });

  const find = (id: string): IndexedRun => {
    const run = index.get(id);
    if (!run) throw new UserError('no-run', 'this run no longer exists', 'Go back to the list of runs.');
    run.viewer.refresh();
    return run;
  };

  for (const [url, { type, content }] of files) app.get(url, (_request, reply) => reply.type(type).send(content));

  app.get('/api/runs', () => index.list().map(summarize));
  app.get<{ Params: { id: string } }>('/api/runs/:id', ({ params }) => find(params.id).viewer.view());
  app.get<{ Params: { id: string } }>('/api/runs/:id/spans', ({ params }) => find(params.id).viewer.spans());
  app.get<{ Params: { id: string } }>('/api/runs/:id/store', ({ params }) => {
    const { run } = find(params.id).viewer;
    const key = run.description.content;
    if (!stores.has(key)) stores.set(key, storeFacts(run));
    return stores.get(key)!;
  });
  app.get<{ Params: { id: string } }>('/api/runs/:id/report', ({ params }, reply) =>
    reply.type('text/html; charset=utf-8').send(reportPage(find(params.id).viewer.view())),
  );
  app.get<{ Params: { id: string } }>('/api/runs/:id/stream', ({ params }, reply) => {
    const { viewer } = find(params.id);
    follow(reply, streams, viewer, interval);
  });
  app.get<{ Querystring: { a: string; b: string; anyway?: string } }>('/api/compare', ({ query }) => {
    const [a, b] = [find(query.a).viewer, find(query.b).viewer];
    const [ofA, ofB] = [a.view(), b.view()];
    if (ofA.fingerprint !== ofB.fingerprint && query.anyway === undefined) {
      const message = `${ofA.path} and ${ofB.path} have different data: their figures cannot be compared.`;
      throw new UserError('not-comparable', message, 'They can be shown side by side, without a verdict.');
    }
    return compareViews(ofA, ofB, pairedOf(a, b));
  });
  await app.ready();
  return app;
}

function summarize({ id, viewer }: IndexedRun): RunSummary {
  viewer.refresh();
  const { path, state, model, step, totalSteps, epoch, epochs, metric, started, updated, fingerprint, ...view } =
    viewer.view();
  const best = view.validations.reduce<number | null>((most, { value }) => Math.max(most ?? value, value), null);
  const about = { path, state, model, step, totalSteps, epoch, epochs, metric, started, updated, fingerprint };
  return { id, ...about, best, loss: view.steps.loss.at(-1) ?? null, alerts: view.alerts };
}

/** Sends the whole view whenever the log or the state has changed: its size does not depend on the length of the run. */
function follow(reply: FastifyReply, streams: Set<ServerResponse>, viewer: RunViewer, interval: number): void {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  streams.add(raw);
  let sent = -1;
  let state = '';
  let quiet = 0;
  const look = (): void => {
    viewer.refresh();
    const view = viewer.view();
    if (viewer.version === sent && view.state === state) {
      if (++quiet % QUIET_LOOKS === 0) raw.write(':\n\n');
      return;
    }
    [sent, state, quiet] = [viewer.version, view.state, 0];
    raw.write(`data: ${JSON.stringify(view)}\n\n`);
  };
  look();
  const timer = setInterval(look, interval);
  raw.on('close', () => {
    clearInterval(timer);
    streams.delete(raw);
  });
}

/** From the saved ranks of both runs; no model is opened. */
function pairedOf({ run: a }: RunViewer, { run: b }: RunViewer): PairedReport | undefined {
  if (!existsSync(a.ranks) || !existsSync(b.ranks)) return undefined;
  const [ofA, ofB] = [readRanks(a.ranks), readRanks(b.ranks)];
  const same = (['fingerprint', 'exclude', 'targets', 'items'] as const).every(key => ofA[key] === ofB[key]);
  return same && ofA.users.length === ofB.users.length ? comparePaired(ofA, ofB) : undefined;
}
