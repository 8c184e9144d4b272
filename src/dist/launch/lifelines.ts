// A silent connection from every rank to the launcher. When a rank dies, its connection closes before MPI notices and ends
// the other ranks, so the first one to break identifies the rank. (MPICH may name any rank that it killed.)

import { randomUUID } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { hostname } from 'node:os';

const VARIABLE = 'TURBOGR_LIFELINE';
/** Sent by a rank that leaves regularly. */
const GOODBYE = 'goodbye\n';

/** The launcher's side. */
export class Lifelines {
  /** The rank whose connection broke first. */
  broken: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly #server: Server;

  private constructor(server: Server, environment: Readonly<Record<string, string>>) {
    this.#server = server;
    this.environment = environment;
  }

  /** `remote`: ranks of other hosts will connect too. */
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
    // 'end', as soon as the peer is gone: 'close' events of several connections come in any order.
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

/** The rank's side: keeps the connection open until the returned function is called or the process ends. */
export function holdLifeline(rank: number, env: NodeJS.ProcessEnv = process.env): () => void {
  const [, host, port, token] = /^(.+):(\d+):(.+)$/.exec(env[VARIABLE] ?? '') ?? [];
  if (host === undefined || token === undefined) return () => undefined;
  const socket = connect({ host, port: Number(port) });
  socket.on('error', () => undefined); // launcher not reachable: MPI's own report must suffice
  socket.unref();
  socket.write(`${token} ${rank}\n`);
  return () => socket.end(GOODBYE);
}
