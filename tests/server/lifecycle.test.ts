// The command under load: nothing that was accepted is lost at SIGTERM, at a reload or under overload.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { train } from '../../src/index.js';
import { type SmallRun, SMALL_CONFIG, smallRun } from '../support/small-run.js';

let small: SmallRun;
beforeAll(async () => {
  small = await smallRun();
}, 300_000);
afterAll(() => small[Symbol.dispose]());

async function start(run: string, ...flags: string[]) {
  const main = join(process.cwd(), 'dist', 'cli', 'main.js');
  const child = spawn(process.execPath, [main, 'serve', run, '--port', '0', ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', text => (complaints += text));
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), once(child, 'exit')]);
  const url = /^http\S+/.exec(String(line))?.[0];
  if (!url) throw new Error(`the server did not start: ${line} ${complaints}`);
  return { child, url, complaints: () => complaints };
}

interface Outcome {
  status: number;
  retryAfter: string | undefined;
  model: string | undefined;
}

/** Sends one request; 'refused' when the connection was, so that nothing was sent. */
function ask(url: string, agent: Agent, user: number): Promise<Outcome | 'refused'> {
  return new Promise((done, fail) => {
    const body = JSON.stringify({ user, k: 10 });
    const sent = request(
      `${url}/v1/recommend`,
      {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      },
      response => {
        let text = '';
        response.setEncoding('utf8').on('data', chunk => (text += chunk));
        response.on('end', () => {
          const answer: { model?: string } = JSON.parse(text);
          done({ status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'], model: answer.model });
        });
        response.on('error', fail);
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ECONNREFUSED' ? done('refused') : fail(error)));
    sent.end(body);
  });
}

/** `clients` that ask one request after the other until `stop`, or until nobody listens. */
async function load(url: string, clients: number, stop: AbortSignal): Promise<Outcome[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const outcomes: Outcome[] = [];
  const client = async (user: number): Promise<void> => {
    while (!stop.aborted) {
      const outcome = await ask(url, agent, user);
      if (outcome === 'refused') return;
      outcomes.push(outcome);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, user) => client(user)));
  agent.destroy();
  return outcomes;
}

test('SIGTERM answers what was sent, then ends with 0', async () => {
  const { child, url } = await start(small.run);
  const stop = new AbortController();
  const loading = load(url, 8, stop.signal);
  await sleep(700);
  child.kill('SIGTERM');
  const [[code], outcomes] = await Promise.all([once(child, 'exit'), loading]); // a lost request would reject
  expect(code).toBe(0);
  expect(outcomes.length).toBeGreaterThan(20);
  expect(outcomes.every(({ status }) => status === 200)).toBe(true);
});

test('a newer checkpoint takes over while requests go on', async () => {
  const run = join(small.folder, 'growing');
  const config = { ...SMALL_CONFIG, epochs: 6, checkpoint: { keep: 1 } };
  const stop = new AbortController();
  const interrupted = new AbortController();
  await train({
    data: join(small.run, 'store'),
    config,
    run,
    signal: interrupted.signal,
    onEvent: event => event.kind === 'validation' && interrupted.abort(),
  });
  const { child, url, complaints } = await start(run, '--reload', '1');
  const loading = load(url, 4, stop.signal);
  await sleep(500);
  await train({ data: join(small.run, 'store'), config, run });
  for (let i = 0; i < 100 && !complaints().includes('now serving'); i++) await sleep(100);
  await sleep(300);
  stop.abort();
  const outcomes = await loading;
  child.kill('SIGTERM');
  await once(child, 'exit');
  expect(outcomes.every(({ status }) => status === 200)).toBe(true);
  expect(new Set(outcomes.map(({ model }) => model)).size).toBeGreaterThanOrEqual(2);
});

test('overload is refused with 429 and Retry-After, and everything gets an answer', async () => {
  const { child, url } = await start(small.run, '--queue', '2', '--batch', '1');
  const agent = new Agent({ keepAlive: true, maxSockets: 100 });
  const outcomes = await Promise.all(Array.from({ length: 100 }, (_, i) => ask(url, agent, i)));
  agent.destroy();
  child.kill('SIGTERM');
  await once(child, 'exit');
  const answered = outcomes.filter(outcome => outcome !== 'refused');
  expect(answered).toHaveLength(100);
  const refused = answered.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.every(({ retryAfter }) => retryAfter === '1')).toBe(true);
  expect(answered.filter(({ status }) => status === 200).length + refused.length).toBe(100);
});
