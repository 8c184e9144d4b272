// A connection from every rank to the launcher. When a rank dies, its connection closes before MPI notices and ends the other
// ranks, so the first one to break identifies the rank: Linux closes a killed process's newest files first, and MPI's own
// connection is older. (MPICH may name any rank that it killed.) Faults are reported over it: mpirun may end a job before it has
// forwarded what a rank printed last.
//
// Lines of a rank: `<token> <rank>`, then any of `fault <JSON>`, which is answered by a line, and `goodbye`. A rank whose
// JavaScript is stuck opens a second connection (native/binding/src/ranks/report.rs).

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import type { RankFault } from './faults.js';

const VARIABLE = 'TURBOGR_LIFELINE';
const FAULT = 'fault ';
/** Sent by a rank that leaves regularly. */
const GOODBYE = 'goodbye';
/** How long a rank waits for the launcher to confirm a report. */
const PATIENCE_MS = 1000;

/** The launcher's side. */
export class Lifelines {
  /** The rank whose connection broke first. */
  broken: number | undefined;
  /** Called for every fault that a rank reports. */
  onFault: (fault: RankFault) => void = () => undefined;
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
    let rank: number | undefined;
    /** Said goodbye, or said why it ends: its end is no news. */
    let excused = false;
    socket.unref();
    const lines = createInterface({ input: socket });
    lines.on('line', line => {
      if (rank === undefined) {
        const [said, number] = line.split(' ');
        if (said === token) rank = Number(number);
        else socket.destroy();
      } else if (line.startsWith(FAULT)) {
        excused = true;
        this.onFault(JSON.parse(line.slice(FAULT.length)));
        socket.write('heard\n');
      } else if (line === GOODBYE) excused = true;
    });
    // 'end', as soon as the peer is gone: 'close' events of several connections come in any order.
    const onBreak = () => {
      if (rank !== undefined && !excused) this.broken ??= rank;
    };
    socket.on('end', onBreak);
    lines.on('error', onBreak); // the socket's
  }

  close(): void {
    this.#server.close();
  }
}

/** The rank's side: open until it is closed or the process ends. */
export class Lifeline {
  readonly #socket: Socket | undefined;

  constructor(rank: number, env: NodeJS.ProcessEnv = process.env) {
    const [, host, port, token] = /^(.+):(\d+):(.+)$/.exec(env[VARIABLE] ?? '') ?? [];
    if (host === undefined || token === undefined) return;
    this.#socket = connect({ host, port: Number(port) });
    this.#socket.on('error', () => undefined); // launcher not reachable: MPI's own report must suffice
    this.#socket.unref();
    this.#socket.write(`${token} ${rank}\n`);
  }

  /** Whether the launcher has confirmed it. */
  async report(fault: RankFault): Promise<boolean> {
    if (!this.#socket?.writable) return false;
    this.#socket.write(`${FAULT}${JSON.stringify(fault)}\n`);
    try {
      await once(this.#socket, 'data', { signal: AbortSignal.timeout(PATIENCE_MS) });
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#socket?.end(`${GOODBYE}\n`);
  }
}
