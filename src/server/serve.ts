// Life cycle of the server: opens model and journal, binds the port, watches the run's folder, and on shutdown answers pending
// requests before closing.

import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../util/errors.js';
import { buildApp } from './app.js';
import { EventJournal } from './event-journal.js';
import { ServerMetrics } from './metrics.js';
import { type HostOptions, ModelHost } from './model-host.js';

export interface ServeOptions {
  run: string;
  /** Default 127.0.0.1: reachable from this machine only. */
  host?: string | undefined;
  /** 0 for any free port. */
  port?: number | undefined;
  threads?: number | undefined;
  /** Titles and other columns of items. */
  items?: HostOptions['items'] | undefined;
  verify?: HostOptions['verify'] | undefined;
  /** Folder for posted events; without it they are refused. */
  events?: string | undefined;
  /** Bearer token, required for every request except health. */
  token?: string | undefined;
  /** Serve beyond this machine without a token. */
  anonymous?: boolean | undefined;
  /** Maximum waiting requests (default 256). */
  queue?: number | undefined;
  /** Maximum requests per batch (default 64). */
  batch?: number | undefined;
  /** Maximum waiting time of a request in milliseconds (default 2,000). */
  timeout?: number | undefined;
  /** Maximum body size in bytes (default 1 MiB). */
  bodyLimit?: number | undefined;
  /** Seconds between polls of the run's folder (default 5); 0 disables polling. */
  reload?: number | undefined;
  /** Milliseconds between the stop request and closing the port (default 500), so that load balancers notice. */
  grace?: number | undefined;
  onReload?: (model: { name: string; version: string }) => void;
  /** Called on failures that do not end the server: a failed reload, or a bug. */
  onError?: (error: Error) => void;
}

export interface RunningServer {
  readonly url: string;
  readonly model: { readonly name: string; readonly version: string };
  /** Polls the run's folder now; returns whether a new model serves. */
  reload(): Promise<boolean>;
  /** Answers pending requests, then closes. */
  close(): Promise<void>;
}

/** Maximum tokens per batch, which bounds its memory. */
const MOST_TOKENS = 32_768;
/** Milliseconds for open connections to finish, and between checks. */
const LONGEST_LEAVE = 1_000;
const LEAVE_STEP = 20;
const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

export async function serve(options: ServeOptions): Promise<RunningServer> {
  const {
    host = '127.0.0.1',
    port = 8080,
    token,
    timeout = 2_000,
    bodyLimit = 1 << 20,
    reload = 5,
    grace = 500,
  } = options;
  if (!LOOPBACK.has(host) && token === undefined && !options.anonymous) {
    throw new UserError(
      'no-token',
      `${host} is reachable from other machines, and no token is set`,
      'Set TURBOGR_TOKEN, or use --anonymous if a proxy in front of the server authenticates clients.',
    );
  }
  const waiting = (): number => models?.model.batcher.waiting ?? 0;
  const metrics = new ServerMetrics(waiting);
  let models: ModelHost | undefined;
  const opened = await ModelHost.open({
    run: options.run,
    ...(options.threads !== undefined && { threads: options.threads }),
    ...(options.items && { items: options.items }),
    ...(options.verify !== undefined && { verify: options.verify }),
    batching: {
      maxBatch: options.batch ?? 64,
      maxSize: MOST_TOKENS,
      maxQueue: options.queue ?? 256,
      onBatch: requests => metrics.batch.observe(requests),
    },
  });
  models = opened;
  metrics.serves(opened.model.name, opened.model.version);
  const journal = options.events === undefined ? undefined : await EventJournal.open(options.events);
  let ready = true;
  let leaving = false;
  const onError = options.onError ?? (() => undefined);
  const app = await buildApp({
    host: opened,
    journal,
    metrics,
    ready: () => ready,
    leaving: () => leaving,
    token,
    timeout,
    bodyLimit,
    onBug: onError,
  });
  const look = async (): Promise<boolean> => {
    try {
      const changed = await opened.reload();
      if (!changed) return false;
      const { name, version } = opened.model;
      metrics.serves(name, version);
      metrics.reloads.inc({ result: 'loaded' });
      options.onReload?.({ name, version });
      return true;
    } catch (error) {
      metrics.reloads.inc({ result: 'failed' });
      onError(error instanceof Error ? error : new Error(String(error)));
      return false;
    }
  };
  const release = async (): Promise<void> => {
    await opened.close();
    await journal?.close();
  };
  let url: string;
  try {
    url = await app.listen({ host, port });
  } catch (error) {
    await release();
    throw explainPort(error, host, port);
  }
  const watch = reload > 0 ? setInterval(() => void look(), reload * 1000) : undefined;
  watch?.unref();
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    clearInterval(watch);
    ready = false;
    await sleep(grace);
    // No new connections; open ones are closed with their next answer. Closing idle ones at once could drop a request in transit.
    leaving = true;
    NetServer.prototype.close.call(app.server);
    for (let waited = 0; waited < LONGEST_LEAVE && (await connections(app.server)) > 0; waited += LEAVE_STEP)
      await sleep(LEAVE_STEP);
    await app.close();
    await release();
  };
  return {
    url,
    get model() {
      return opened.model;
    },
    reload: look,
    close: () => (closing ??= close()),
  };
}

function connections(server: NetServer): Promise<number> {
  return new Promise(resolve => server.getConnections((_error, count) => resolve(count ?? 0)));
}

function explainPort(error: unknown, host: string, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') {
    return new UserError('port-in-use', `${host}:${port} is in use`, 'Choose another port with --port.', {
      cause: error,
    });
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EACCES') {
    const remedy = 'Choose another address with --host or --port.';
    return new UserError('no-address', `${host}:${port} cannot be bound (${code})`, remedy, { cause: error });
  }
  return error;
}
