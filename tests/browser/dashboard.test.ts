// The dashboard in a real Chromium: a finished run, a live one, a comparison, keys, phone width, dark, 100,000 steps.
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { findChromium, launchChromium } from '../../scripts/chromium.mjs';
import { train } from '../../src/index.js';
import { type RunningUi, serveUi } from '../../src/ui/serve-ui.js';
import { SMALL_CONFIG, type SmallRun, smallRun } from '../support/small-run.js';

const reason = findChromium()
  ? existsSync(new URL('../../dist/web/index.html', import.meta.url))
    ? ''
    : 'the dashboard is not built (npm run build:web)'
  : 'there is no Chromium on the PATH (Debian: apt-get install chromium)';
if (reason) console.warn(`tests/browser skipped: ${reason}`);

const LISTED = z.array(z.object({ id: z.string(), path: z.string() }));
const VIEW = z.object({ steps: z.record(z.string(), z.array(z.number().nullable())) });
/** Steps of the long run, what else a page may have parsed for it, and the size of what the page is sent. */
const MANY_STEPS = 100_000;
const FEW_PARSED = 1000;
const MOST_BYTES = 150_000;

describe.skipIf(reason !== '')('the dashboard', () => {
  let small: SmallRun;
  let server: RunningUi;
  let browser: Awaited<ReturnType<typeof launchChromium>>;
  const profile = mkdtempSync(join(tmpdir(), 'turbogr-chromium-'));
  const ids = new Map<string, string>();
  const complaints: string[] = [];

  beforeAll(async () => {
    small = await smallRun({ ...SMALL_CONFIG, epochs: 4 });
    const runs = join(small.folder, 'runs');
    mkdirSync(runs);
    cpSync(small.run, join(runs, 'first'), { recursive: true });
    await train({ data: join(small.run, 'store'), run: join(runs, 'second'), config: { ...SMALL_CONFIG, seed: 2 } });
    const prepare = { split: 'user:0.2' };
    await train({ data: small.log, run: join(runs, 'other-data'), config: SMALL_CONFIG, prepare });
    makeLongRun(join(runs, 'second'), join(runs, 'long'));
    makeLiveRun(join(runs, 'second'), join(runs, 'live'));
    server = await serveUi({ folders: [runs], port: 0, interval: 100 });
    browser = await launchChromium(profile);
    const listed: unknown = await (await fetch(`${server.url}/api/runs`)).json();
    for (const { id, path } of LISTED.parse(listed)) ids.set(path.slice(runs.length + 1), id);
  }, 180_000);
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    small?.[Symbol.dispose]();
    rmSync(profile, { recursive: true, force: true });
  });

  async function open(hash: string, options = {}): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, ...options });
    page.on('console', message => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', error => complaints.push(error.message));
    page.on('request', request => {
      if (!request.url().startsWith(server.url) && !request.url().startsWith('data:')) complaints.push(request.url());
    });
    await page.goto(`${server.url}/${hash}`);
    return page;
  }

  test('a finished run: curves with the baselines, costs, memory, streams, data, identity', async () => {
    const page = await open(`#/run/${ids.get('first')}`);
    await page.locator('.lanes svg rect').first().waitFor();
    await page.locator('.histogram i').first().waitFor();
    const text = await page.locator('main').innerText();
    for (const words of [
      'Training loss',
      'first-order Markov',
      'as the paper counts',
      'Learning rate',
      'effective training time',
      'Memory by owner',
      'optimiser state',
      'hstu_attention_backward',
      'rank 0 compute',
      'Events per user',
      'Negatives per token',
      'data fingerprint',
      'one process since the first step',
    ]) {
      expect(text).toContain(words);
    }
    expect(await page.locator('canvas').count()).toBeGreaterThanOrEqual(7);
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
    await page.close();
  });

  test('a live run grows while it is looked at', async () => {
    const path = join(small.folder, 'runs', 'live', 'events.jsonl');
    const page = await open(`#/run/${ids.get('live')}`);
    const steps = page.locator('.keys b').first();
    await steps.waitFor();
    expect(await page.locator('.state').innerText()).toBe('running');
    appendFileSync(path, `${JSON.stringify({ ...stepEvent(777), time: new Date().toISOString() })}\n`);
    await page.locator('.keys b', { hasText: /^777/ }).first().waitFor(); // waitForFunction would need eval, which the page forbids
    await page.close();
  });

  test('two runs side by side; different data only after a click', async () => {
    const page = await open(`#/compare/${ids.get('first')}/${ids.get('second')}`);
    await page.getByText('could be chance').or(page.getByText('is better')).first().waitFor();
    expect(await page.locator('main').innerText()).toContain('seed');
    await page.close();
    const refused = await open(`#/compare/${ids.get('first')}/${ids.get('other-data')}`);
    await refused.getByRole('alert').waitFor();
    expect(await refused.locator('canvas').count()).toBe(0);
    await refused.getByRole('button', { name: 'Show them side by side' }).click();
    await refused.locator('canvas').first().waitFor();
    expect(await refused.locator('main').innerText()).toContain('cannot be compared');
    await refused.close();
  });

  test('keys: move, mark, compare, back, dark', async () => {
    const page = await open('');
    await page.locator('tr.at').waitFor();
    for (const key of ['x', 'j', 'x', 'c']) await page.keyboard.press(key);
    await page.waitForURL(/#\/compare\//);
    await page.keyboard.press('Escape');
    await page.waitForURL(/#\/$/);
    await page.locator('tr.at').waitFor();
    await page.keyboard.press('t');
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await page.evaluate('localStorage.clear()');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/run\//);
    await page.close();
  });

  test('on a phone nothing is wider than the screen; dark is dark', async () => {
    const page = await open(`#/run/${ids.get('first')}`, {
      viewport: { width: 390, height: 844 },
      colorScheme: 'dark',
    });
    await page.locator('.histogram i').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    const background = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'));
    expect(Math.max(...background.match(/\d+/g)!.slice(0, 3).map(Number))).toBeLessThan(40);
    await page.close();
  });

  test('100,000 steps open with one reading of the log and a picture of 600 points', async () => {
    // A server that has never seen the run: reading the log is part of opening it.
    const fresh = await serveUi({ folders: [join(small.folder, 'runs', 'long')], port: 0 });
    const parsing = vi.spyOn(JSON, 'parse');
    const page = await browser.newPage({});
    const url = `${fresh.url}/#/run/${ids.get('long')}`;
    const open = async (): Promise<{ parsed: number; wall: number }> => {
      const [before, start] = [parsing.mock.calls.length, performance.now()];
      await page.goto('about:blank');
      await page.goto(url);
      await page.locator('.u-over').nth(5).waitFor({ state: 'attached' });
      return { parsed: parsing.mock.calls.length - before, wall: performance.now() - start };
    };
    const first = await open();
    expect(await page.locator('.keys b').first().innerText()).toContain('100,000');
    // Every line is parsed once, whatever the page asks for, and none when it is opened again.
    expect(first.parsed).toBeLessThan(MANY_STEPS + FEW_PARSED);
    expect((await open()).parsed).toBeLessThan(FEW_PARSED);
    parsing.mockRestore();
    await page.close();
    const view = await (await fetch(`${fresh.url}/api/runs/${ids.get('long')}`)).text();
    await fresh.close();
    expect(view.length).toBeLessThan(MOST_BYTES);
    const { steps } = VIEW.parse(JSON.parse(view));
    expect(new Set(Object.values(steps).map(column => column.length))).toEqual(new Set([600]));
    expect(steps['step']?.at(-1)).toBe(MANY_STEPS);
    console.log(`100,000 steps opened in ${first.wall.toFixed(0)} ms`);
  });

  test('only this machine is answered, and no page asked for anything from outside or complained', async () => {
    const { status } = await fetch(`${server.url}/api/runs`);
    expect(status).toBe(200);
    const { request } = await import('node:http');
    const foreign = await new Promise<number>(resolve => {
      request(`${server.url}/api/runs`, { headers: { host: 'evil.example' } }, response => {
        resolve(response.statusCode ?? 0);
        response.resume();
      }).end();
    });
    expect(foreign).toBe(403);
    // The browser itself logs the refusal of different data.
    expect(complaints.filter(text => !text.includes('status of 409'))).toEqual([]);
  });
});

function stepEvent(step: number) {
  const loss = 2 + 6 / Math.sqrt(step) + Math.sin(step) / 20;
  const rates = { tokensPerSecond: 50_000 + 1000 * Math.sin(step / 50), mfu: 0.3, mfuPaper: 0.5 };
  return { kind: 'step', step, epoch: 0, loss, lr: 1e-3, tokens: 4096, ...rates };
}

function makeLongRun(from: string, to: string): void {
  mkdirSync(to);
  cpSync(join(from, 'run.json'), join(to, 'run.json'));
  const [head] = readFileSync(join(from, 'events.jsonl'), 'utf8').split('\n');
  const lines = Array.from({ length: MANY_STEPS }, (_, i) => {
    return JSON.stringify({ time: new Date(1.7e12 + i * 80).toISOString(), ...stepEvent(i + 1) });
  });
  writeFileSync(join(to, 'events.jsonl'), `${[head, ...lines].join('\n')}\n`);
}

function makeLiveRun(from: string, to: string): void {
  mkdirSync(to);
  cpSync(join(from, 'run.json'), join(to, 'run.json'));
  const lines = readFileSync(join(from, 'events.jsonl'), 'utf8')
    .split('\n')
    .filter(line => line !== '' && !line.includes('"finished"'))
    .map(line => line.replace(/"time":"[^"]*"/, `"time":"${new Date().toISOString()}"`));
  writeFileSync(join(to, 'events.jsonl'), `${lines.join('\n')}\n`);
}
