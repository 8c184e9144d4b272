// `turbogr serve` under load from another process on loopback: requests/s, p50 and p99 at 1, 16 and 64 connections, for a
// catalogue of 100,000 items, histories of 200 events, k = 10. With --python <interpreter that has torch, fastapi, uvicorn
// and safetensors> the same weights are also served by PyTorch behind uvicorn, under the same load.
//
//   node scripts/bench-serve.mjs [--seconds 5] [--size micro] [--python venv/bin/python]
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ITEMS = 100_000;
const HISTORY = 200;
const K = 10;
const CONNECTIONS = [1, 16, 64];
const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '5' },
    size: { type: 'string', default: 'micro' },
    python: { type: 'string' },
  },
});
const seconds = Number(values.seconds);

if (positionals[0] === 'load') {
  const [, url, connections] = positionals;
  console.log(JSON.stringify(await load(url, Number(connections))));
} else {
  await measure();
}

async function measure() {
  const folder = mkdtempSync(join(tmpdir(), 'turbogr-bench-serve-'));
  try {
    const run = join(folder, 'run');
    await writeLog(join(folder, 'log.csv'));
    const train = ['train', join(folder, 'log.csv'), '--run', run, '--size', values.size];
    const short = [
      '--set',
      'maxSteps=2',
      '--set',
      'priors=off',
      '--set',
      `model.maxLength=${HISTORY}`,
      '--set',
      'evaluation.users=50',
    ];
    execFileSync(process.execPath, [main, ...train, ...short], { stdio: 'ignore' });
    const weights = join(folder, 'weights.safetensors');
    execFileSync(process.execPath, [main, 'export', run, '--out', weights], { stdio: 'ignore' });

    const ours = await start(process.execPath, [main, 'serve', run, '--port', '0', '--reload', '0']);
    const theirs = values.python
      ? await start(values.python, [
          fileURLToPath(new URL('bench_serve_torch.py', import.meta.url)),
          weights,
          join(run, 'store', 'items.safetensors'),
        ])
      : undefined;
    if (theirs) await compare(ours.url, theirs.url);
    for (const connections of CONNECTIONS) {
      // Interleaved, so that both see the same machine conditions.
      for (const [name, server] of Object.entries({ turbogr: ours, ...(theirs && { pytorch: theirs }) })) {
        const figures = await inChild(server.url, connections);
        console.log(JSON.stringify({ name, connections, ...figures }));
      }
    }
    for (const server of [ours, theirs]) server?.child.kill('SIGTERM');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Every item occurs; users are longer than a history. */
async function writeLog(path) {
  const out = createWriteStream(path);
  out.write('user_id,item_id,timestamp\n');
  const users = 1000;
  const perUser = 300;
  for (let user = 0; user < users; user++) {
    const rows = Array.from({ length: perUser }, (_, i) => {
      const item = i < ITEMS / users ? user * (ITEMS / users) + i : (user * 7919 + i * 104_729) % ITEMS;
      return `${user},${item},${1_600_000_000 + 3600 * i}\n`;
    });
    out.write(rows.join(''));
  }
  out.end();
  await once(out, 'finish');
}

async function start(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\S+/.exec(line)?.[0];
    if (url) return { child, url };
  }
  throw new Error(`${command} did not start`);
}

/** Both must answer the same items. */
async function compare(a, b) {
  const ask = async url => {
    const body = JSON.stringify(question(1));
    const response = await fetch(`${url}/v1/recommend`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    return (await response.json()).items;
  };
  const [x, y] = [await ask(a), await ask(b)];
  const difference = Math.max(...x.map(({ score }, i) => Math.abs(score - y[i].score)));
  const same = x.every(({ item }, i) => String(item) === String(y[i].item));
  console.log(JSON.stringify({ sameItems: same, largestScoreDifference: difference }));
}

function question(n) {
  const history = Array.from({ length: HISTORY }, (_, i) => ({
    item: (n * 6151 + i * 3571) % ITEMS,
    time: 1_600_000_000 + 3600 * i,
  }));
  return { history, k: K, at: 1_600_000_000 + 3600 * HISTORY };
}

async function inChild(url, connections) {
  const args = [fileURLToPath(import.meta.url), 'load', url, String(connections), '--seconds', values.seconds];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', chunk => (text += chunk));
  await once(child, 'close');
  return JSON.parse(text);
}

/** Closed loop: each connection sends the next request when it gets its answer. */
async function load(url, connections) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const bodies = Array.from({ length: 64 }, (_, n) => JSON.stringify(question(n)));
  const times = [];
  let failed = 0;
  const ask = n =>
    new Promise((done, fail) => {
      const body = bodies[n % bodies.length];
      const begin = performance.now();
      const options = {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      };
      const sent = request(`${url}/v1/recommend`, options, response => {
        response.resume().on('end', () => {
          if (response.statusCode === 200) times.push(performance.now() - begin);
          else failed++;
          done();
        });
      });
      sent.on('error', fail).end(body);
    });
  await Promise.all(Array.from({ length: connections }, (_, n) => ask(n))); // connect and warm up
  times.length = 0;
  const start = performance.now();
  const end = start + seconds * 1000;
  const client = async n => {
    while (performance.now() < end) await ask(n++);
  };
  await Promise.all(Array.from({ length: connections }, (_, n) => client(n * 5)));
  const elapsed = (performance.now() - start) / 1000;
  agent.destroy();
  times.sort((a, b) => a - b);
  const at = share => Number(times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(2));
  return { perSecond: Math.round(times.length / elapsed), p50: at(0.5), p99: at(0.99), failed };
}
