// Life cycle of the dashboard's server.

import { UserError } from '../util/errors.js';
import { buildUi, type UiAppOptions } from './app.js';

export interface UiOptions extends UiAppOptions {
  /** 0 for any free port. */
  port?: number;
}

export interface RunningUi {
  readonly url: string;
  close(): Promise<void>;
}

/** Local only: it shows file names, configs and figures without authentication. */
const HOST = '127.0.0.1';

export async function serveUi({ port = 6007, ...options }: UiOptions): Promise<RunningUi> {
  const app = await buildUi(options);
  try {
    const url = await app.listen({ host: HOST, port });
    return { url, close: () => app.close() };
  } catch (cause) {
    await app.close();
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw cause;
    throw new UserError('port-in-use', `${HOST}:${port} cannot be bound (${code})`, 'Choose another with --port.', {
      cause,
    });
  }
}
