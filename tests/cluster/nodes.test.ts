// Simulated nodes (network namespaces): they are connected, rate-limited, counted, and removed in any case.

import { spawn, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { NodeSpaces, whyNoNodeSpaces } from '../../src/dist/launch/node-spaces.js';
import { MAIN, MPIS, run } from './mpi.js';

const WHY = whyNoNodeSpaces();
if (WHY !== undefined) process.stderr.write(`tests of nodes skip: ${WHY}\n`);
const LARGE = fileURLToPath(new URL('./programs/large-exchange.mjs', import.meta.url));
const SPACES = fileURLToPath(new URL('../../dist/dist/launch/node-spaces.js', import.meta.url));

function spaces(): string[] {
  const { stdout } = spawnSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  return stdout.split('\n').map(line => line.split(' ')[0]!);
}

async function allGone(names: readonly string[]): Promise<boolean> {
  for (let waited = 0; waited < 100; waited++) {
    if (!spaces().some(name => names.includes(name))) return true;
    await sleep(100);
  }
  return false;
}

/** Nobody listens there: a node that can be reached says so at once. */
const CONNECT = `const socket = require('node:net').connect({ host: '10.77.0.2', port: 9 });
  const end = text => { console.log(text); process.exit(); };
  socket.on('error', error => end(error.code));
  setTimeout(() => end('nothing'), 1000);`;

test.skipIf(WHY !== undefined)('bytes between nodes are counted, and a cut link carries none', async () => {
  await using nodes = new NodeSpaces({ nodes: 2, bitsPerSecond: 1e8 });
  const connect = () => {
    const { command, arguments: words } = nodes.onFirst(process.execPath, ['-e', CONNECT]);
    return spawnSync(command, words, { encoding: 'utf8' }).stdout.trim();
  };
  const [before] = nodes.bytesSent();
  expect(connect()).toBe('ECONNREFUSED');
  expect(nodes.bytesSent()[0]!).toBeGreaterThan(before!);
  nodes.setLink(1, 'down');
  expect(connect()).not.toBe('ECONNREFUSED');
  const { names } = nodes;
  await nodes.remove();
  expect(await allGone(names)).toBe(true);
});

test.skipIf(WHY !== undefined)('a maker that is killed leaves no node and no process behind', async () => {
  const program = `const { NodeSpaces } = await import(${JSON.stringify(SPACES)});
    const nodes = new NodeSpaces({ nodes: 2 });
    const { spawn } = await import('node:child_process');
    const { command, arguments: words } = nodes.onFirst('sleep', ['1000']);
    spawn(command, words, { detached: true, stdio: 'ignore' });
    console.log(JSON.stringify(nodes.names));
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const names = await new Promise<string[]>(resolve => {
    child.stdout.once('data', chunk => {
      const printed: string[] = JSON.parse(String(chunk));
      resolve(printed);
    });
  });
  expect(spaces()).toEqual(expect.arrayContaining(names));
  child.kill('SIGKILL');
  expect(await allGone(names)).toBe(true);
  const left = spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout;
  expect(left.includes(names[0]!)).toBe(false);
});

// Only in the long form: on a busy machine, whether heartbeats arrive in time depends on who gets a core.
test.skipIf(WHY !== undefined || MPIS.length === 0 || process.env['TURBOGR_LONG'] !== '1')(
  'heartbeats pass an exchange of seconds on a slow link',
  async () => {
    await using nodes = new NodeSpaces({ nodes: 2, bitsPerSecond: 1e8 });
    const words = [MAIN, 'launch', ...nodes.launchFlags(MPIS[0]!, 1), LARGE, String(70 * 2 ** 20)];
    const { command, arguments: args } = nodes.onFirst(process.execPath, words);
    const { code, stderr, seconds } = await run(command, args);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(seconds).toBeGreaterThan(6); // a neighbour counts as lost after five
  },
);

interface Row {
  group_size: number;
  staleness: 0 | 1 | 'exact';
  wire: 'f32' | 'f16';
  forward_ms: number;
  node_mb: number;
  changed: number;
  compute_ratio: number;
  exposed_comm: number;
  wait: number;
  free: number;
}

test.skipIf(WHY !== undefined || !MPIS.includes('openmpi'))('bench network measures every scheme', async () => {
  const { code, stdout } = await run(process.execPath, [MAIN, 'bench', 'network', '--quick', '--json']);
  expect(code).toBe(0);
  const { rows }: { rows: Row[] } = JSON.parse(stdout);
  expect(rows.map(row => `${row.group_size}/${row.staleness}/${row.wire}`)).toEqual([
    '4/0/f32',
    '2/0/f32',
    '4/exact/f32',
    '4/1/f32',
    '2/exact/f32',
    '2/1/f32',
    '4/0/f16',
    '2/0/f16',
  ]);
  expect(rows[6]!.node_mb).toBeLessThan(rows[0]!.node_mb); // rows cross the link in half as many bytes
  for (const { forward_ms, node_mb, compute_ratio, exposed_comm, wait, free } of rows) {
    expect(forward_ms).toBeGreaterThan(0);
    expect(node_mb).toBeGreaterThan(0);
    expect(compute_ratio + exposed_comm + wait + free).toBeCloseTo(1, 6);
  }
  // Rows are changed after they were fetched exactly where they are fetched ahead.
  expect(rows.map(({ staleness, changed }) => (changed > 0 ? 'ahead' : staleness))).toEqual([
    0,
    0,
    'ahead',
    'ahead',
    'ahead',
    'ahead',
    0,
    0,
  ]);
});
