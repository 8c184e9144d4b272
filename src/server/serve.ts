// A server from start to end: the model and the journal are opened, the port is bound, the run's folder is watched, and at
// the end what is under way is answered before anything is closed.

import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../util/errors.js';
import { buildApp } from './app.js';
import { EventJournal } from './event-journal.js';
import { ServerMetrics } from './metrics.js';
import { type HostOptions, ModelHost } from './model-host.js';

export interface ServeOptions {
  run: string;
  /** 127.0.0.1 by default: reachable from this machine only. */
  host?: string | undefined;
  /** 0 for any free one. */
  port?: number | undefined;
  threads?: number | undefined;
  /** Titles and other columns of items. */
  items?: HostOptions['items'] | undefined;
  verify?: HostOptions['verify'] | undefined;
  /** Folder for events that are posted; without it they are refused. */
  events?: string | undefined;
  /** Required of every request but for health. */
  token?: string | undefined;
  /** Serve beyond this machine without a token. */
  anonymous?: boolean | undefined;
  /** Requests that may wait (256 by default). */
  queue?: number | undefined;
  /** Requests of one batch, at most (64 by default). */
  batch?: number | undefined;
  /** Milliseconds a request may wait (2,000 by default). */
  timeout?: number | undefined;
  /** Bytes of a body, at most (1 MiB by default). */
  bodyLimit?: number | undefined;
  /** Seconds between looks at the run's folder (5 by default); 0 never looks. */
  reload?: number | undefined;
  /** Milliseconds between the wish to end and closing the port (500 by default): balancers notice, clients reconnect elsewhere. */
  grace?: number | undefined;
  onReload?: (model: { name: string; version: string }) => void;
  /** Told what failed without ending the server: a reload, or a bug of ours. */
  onError?: (error: Error) => void;
}

export interface RunningServer {
  readonly url: string;
  readonly model: { readonly name: string; readonly version: string };
  /** Looks at the run's folder at once; whether another model serves now. */
  reload(): Promise<boolean>;
  /** Answers what is under way, then closes. */
  close(): Promise<void>;
}

/** Tokens of one batch, at most: what keeps a batch of long histories within memory. */
const MOST_TOKENS = 32_768;
/** Milliseconds in which open connections may finish, and between two looks at them. */
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
      'Set TURBOGR_TOKEN, or say --anonymous if something before the server checks who asks.',
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
    // No new connections; those that are open are told to close with their next answer. Closing idle ones at once would
    // cut off a request that is on its way.
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
