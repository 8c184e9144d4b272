// A connection from every rank to the launcher, over which nothing is said. When a rank dies, its end closes before the MPI
// learns of it and ends the others, so the line that breaks first names the rank. (MPICH names any of those it killed.)

import { randomUUID } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { hostname } from 'node:os';

const VARIABLE = 'TURBOGR_LIFELINE';
/** A rank that leaves in order says so first. */
const GOODBYE = 'goodbye\n';

/** The launcher's side. */
export class Lifelines {
  /** The rank whose line broke first. */
  broken: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly #server: Server;

  private constructor(server: Server, environment: Readonly<Record<string, string>>) {
    this.#server = server;
    this.environment = environment;
  }

  /** `remote`: ranks of other hosts will call too. */
  static async open(remote: boolean): Promise<Lifelines> {
    const token = randomUUID();
    const host = remote ? hostname() : '127.0.0.1';
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(0, remote ? undefined : host, resolve);
    });
    server.unref();
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const lines = new Lifelines(server, { [VARIABLE]: `${host}:${port}:${token}` });
    server.on('connection', socket => lines.#hold(socket, token));
    return lines;
  }

  #hold(socket: Socket, token: string): void {
    let heard = '';
    socket.unref();
    socket.on('data', chunk => (heard += String(chunk)));
    // As soon as the other end is gone: 'close' events of several lines come in any order.
    const onBreak = () => {
      const [said, rank] = heard.split(/\s/);
      if (said === token && !heard.endsWith(GOODBYE)) this.broken ??= Number(rank);
    };
    socket.on('end', onBreak).on('error', onBreak);
  }

  close(): void {
    this.#server.close();
  }
}

/** The rank's side: holds the line until the function that it returns is called, or the process ends. */
export function holdLifeline(rank: number, env: NodeJS.ProcessEnv = process.env): () => void {
  const [, host, port, token] = /^(.+):(\d+):(.+)$/.exec(env[VARIABLE] ?? '') ?? [];
  if (host === undefined || token === undefined) return () => undefined;
  const socket = connect({ host, port: Number(port) });
  socket.on('error', () => undefined); // a launcher out of reach: the MPI's own report must do
  socket.unref();
  socket.write(`${token} ${rank}\n`);
  return () => socket.end(GOODBYE);
}
