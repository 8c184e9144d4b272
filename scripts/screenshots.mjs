// Screenshots of the dashboard for docs/: two finished runs, a live one, dark, phone width, a comparison.
//
//   node scripts/screenshots.mjs <folder with two finished runs and one in training> [out]
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveUi } from '../dist/ui/serve-ui.js';
import { launchChromium } from './chromium.mjs';

const [folder, out = 'docs/images'] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'turbogr-chromium-'));
const server = await serveUi({ folders: [folder], port: 0 });
const browser = await launchChromium(profile);
mkdirSync(out, { recursive: true });
try {
  const runs = await (await fetch(`${server.url}/api/runs`)).json();
  const finished = runs.filter(({ state }) => state === 'finished');
  const live = runs.find(({ state }) => state === 'running') ?? finished[0];
  const [a, b] = finished;
  await picture('dashboard-live', `#/run/${live.id}`, { width: 1280, height: 860 });
  await picture('dashboard-dark', `#/run/${a.id}`, { width: 1280, height: 860, colorScheme: 'dark' });
  await picture('dashboard-costs', `#/run/${a.id}`, { width: 1280, height: 860, at: '.lanes' });
  await picture('dashboard-phone', `#/run/${a.id}`, { width: 390, height: 844 });
  await picture('dashboard-compare', `#/compare/${a.id}/${b.id}`, { width: 1280, height: 712, at: 'table >> nth=-1' });
} finally {
  await browser.close();
  await server.close();
  rmSync(profile, { recursive: true, force: true });
}

async function picture(name, hash, { width, height, colorScheme = 'light', at }) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  const path = join(out, `${name}.png`);
  await page.goto(`${server.url}/${hash}`);
  await page.waitForSelector('.u-legend');
  await page.waitForTimeout(1500);
  if (at) await page.locator(at).scrollIntoViewIfNeeded();
  await page.screenshot({ path });
  await page.close();
  console.log(path);
}
