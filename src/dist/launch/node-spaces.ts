// Several "nodes" on one machine, for measuring and testing what a network does: network namespaces with host names of
// their own, joined by a switch whose links have a limited rate. Ranks inside one node share memory; between nodes only
// the links carry bytes. Needs Linux, root, iproute2 and util-linux.
//
// A guardian process holds the other end of a pipe: when the creator closes it, or dies for any reason, the guardian kills
// the processes inside the nodes and removes the nodes. So even `kill -9` leaves nothing behind.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import type { MpiKind } from './mpi-kind.js';

export interface NodeSpacesOptions {
  nodes: number;
  /** Rate of each node's link in each direction, in bits per second; unlimited when absent. */
  bitsPerSecond?: number;
}

/** A command to start, as for `spawn`. */
export interface NodeCommand {
  command: string;
  arguments: string[];
}

const SUBNET = '10.77.0';
/** Replacement for ssh: runs a command on a node, under the node's host name. */
const AGENT = `#!/bin/sh
while [ "\${1#-}" != "$1" ]; do shift; done
node=$1; shift
exec ip netns exec "$node" unshare --uts sh -c "hostname $node; $*"
`;
/** $1: folder; then the namespaces. Processes inside are killed first: they would keep the nodes alive. Open MPI's
 * daemons then leave their session folders behind. */
const GUARDIAN = `
read -r nothing
folder=$1; shift
for space in "$@"; do
  ip netns pids "$space" | while read -r pid; do kill -9 "$pid"; done
  ip netns del "$space"
  rm -rf "/etc/netns/$space" "\${TMPDIR:-/tmp}/ompi.$space."*
done
rm -rf "$folder"
`;

/** Why nodes cannot be made here; undefined when they can. */
export function whyNoNodeSpaces(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces need Linux';
  for (const [tool, install] of [
    ['ip', 'iproute2'],
    ['tc', 'iproute2'],
    ['unshare', 'util-linux'],
  ] as const) {
    if (spawnSync(tool, ['-V']).error) return `${tool} was not found (Debian: apt-get install ${install})`;
  }
  const tried = spawnSync('unshare', ['--net', '--uts', '--mount', 'true'], { encoding: 'utf8' });
  if (tried.status !== 0 || process.getuid?.() !== 0) {
    return `this process may not make network namespaces (it needs root): ${tried.stderr.trim() || 'not root'}`;
  }
  return undefined;
}

let made = 0;

export class NodeSpaces {
  /** Host names, node by node. */
  readonly names: readonly string[];
  readonly #switch: string;
  readonly #agent: string;
  readonly #guardian: ChildProcess;

  constructor({ nodes, bitsPerSecond }: NodeSpacesOptions) {
    const why = whyNoNodeSpaces();
    if (why !== undefined) {
      throw new UserError('no-namespaces', why, 'Run it as root on Linux, in a container with --privileged.');
    }
    const prefix = `tgr${process.pid}x${made++}`;
    this.names = Array.from({ length: nodes }, (_, i) => `${prefix}n${i}`);
    this.#switch = `${prefix}sw`;
    const folder = mkdtempSync(join(tmpdir(), 'turbogr-nodes-'));
    this.#agent = join(folder, 'agent');
    writeFileSync(this.#agent, AGENT, { mode: 0o755 });
    // In its own session, so that Ctrl-C does not reach it.
    this.#guardian = spawn('sh', ['-c', GUARDIAN, 'sh', folder, ...this.names, this.#switch], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#guardian.unref();
    try {
      this.#make(bitsPerSecond);
    } catch (error) {
      this.#guardian.stdin?.end();
      throw error;
    }
  }

  #make(bitsPerSecond: number | undefined): void {
    ip('netns', 'add', this.#switch);
    ip('-n', this.#switch, 'link', 'add', 'br0', 'type', 'bridge');
    ip('-n', this.#switch, 'link', 'set', 'br0', 'mtu', '9000', 'up');
    const hosts = this.names.map((name, i) => `${SUBNET}.${i + 1} ${name}\n`).join('');
    this.names.forEach((name, i) => {
      ip('netns', 'add', name);
      mkdirSync(`/etc/netns/${name}`, { recursive: true });
      writeFileSync(`/etc/netns/${name}/hosts`, `127.0.0.1 localhost\n${hosts}`);
      ip('-n', name, 'link', 'set', 'lo', 'up');
      ip('link', 'add', 'eth0', 'netns', name, 'type', 'veth', 'peer', 'name', `p${i}`, 'netns', this.#switch);
      ip('-n', name, 'link', 'set', 'eth0', 'mtu', '9000', 'up');
      ip('-n', name, 'addr', 'add', `${SUBNET}.${i + 1}/24`, 'dev', 'eth0');
      ip('-n', this.#switch, 'link', 'set', `p${i}`, 'mtu', '9000', 'master', 'br0', 'up');
      // bbr, the default of some kernels, paces by its own timers; reno is in every kernel.
      const tcp = ['net.ipv4.tcp_congestion_control=reno', 'net.ipv4.tcp_slow_start_after_idle=0'];
      must('ip', ['netns', 'exec', name, 'sysctl', '-qw', ...tcp]);
      if (bitsPerSecond === undefined) return;
      limit(name, 'eth0', bitsPerSecond);
      limit(this.#switch, `p${i}`, bitsPerSecond);
    });
  }

  /** A command on the first node, from which an MPI reaches the others. */
  onFirst(command: string, args: readonly string[]): NodeCommand {
    return { command: this.#agent, arguments: [this.names[0]!, 'exec', ...[command, ...args].map(quoted)] };
  }

  /** Flags of `turbogr launch` for ranks on all nodes, `perNode` consecutive ranks on each. */
  launchFlags(kind: MpiKind, perNode: number): string[] {
    const mpi = kind === 'openmpi' ? this.#openMpiFlags() : this.#mpichFlags();
    const hosts = this.names.map(name => `${name}:${perNode}`).join(',');
    const count = String(this.names.length * perNode);
    return ['--mpi', kind, '-n', count, '--hosts', hosts, ...mpi.map(flag => `--mpi-flag=${flag}`)];
  }

  /** Open MPI would use any interface, and needs to know how to start a daemon on another node. */
  #openMpiFlags(): string[] {
    const settings = {
      plm_rsh_agent: this.#agent,
      pml: 'ob1',
      btl: 'self,vader,tcp',
      btl_tcp_if_include: `${SUBNET}.0/24`,
      oob_tcp_if_include: `${SUBNET}.0/24`,
    };
    return Object.entries(settings).flatMap(([name, value]) => ['--mca', name, value]);
  }

  /** UCX mistakes the nodes for one host and bypasses the link through shared memory unless configured otherwise. */
  #mpichFlags(): string[] {
    const ucx = ['-genv', 'UCX_TLS', 'tcp,self', '-genv', 'UCX_NET_DEVICES', 'eth0'];
    return ['-launcher', 'ssh', '-launcher-exec', this.#agent, '-iface', 'eth0', ...ucx];
  }

  /** Bytes that each node has sent over its link so far. */
  bytesSent(): number[] {
    return this.names.map(name => {
      const { stdout } = must('ip', ['netns', 'exec', name, 'cat', '/sys/class/net/eth0/statistics/tx_bytes']);
      return Number(stdout);
    });
  }

  /** Processes that run on the nodes. */
  processes(): number[] {
    return this.names.flatMap(name =>
      must('ip', ['netns', 'pids', name]).stdout.split('\n').filter(Boolean).map(Number),
    );
  }

  /** Disconnects a node, or reconnects it. */
  setLink(node: number, state: 'up' | 'down'): void {
    ip('-n', this.#switch, 'link', 'set', `p${node}`, state);
  }

  /** Kills the processes inside and removes the nodes; returns when they are gone. */
  async remove(): Promise<void> {
    if (this.#guardian.exitCode !== null) return;
    const gone = new Promise(resolve => this.#guardian.once('close', resolve));
    this.#guardian.ref();
    this.#guardian.stdin?.end();
    await gone;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.remove();
  }
}

/** Token bucket size: one millisecond at the link's rate, at least two large frames. */
function limit(space: string, device: string, bitsPerSecond: number): void {
  const burst = Math.max(18_000, Math.round(bitsPerSecond / 8000));
  const shape = ['rate', `${bitsPerSecond}bit`, 'burst', String(burst), 'limit', '4mb'];
  must('tc', ['-n', space, 'qdisc', 'add', 'dev', device, 'root', 'tbf', ...shape]);
}

function ip(...args: string[]): void {
  must('ip', args);
}

function must(command: string, args: readonly string[]): { stdout: string } {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return { stdout };
  throw new Error(`${command} ${args.join(' ')} failed: ${stderr.trim()}`);
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
