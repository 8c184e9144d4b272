// Finds and starts the system's Chromium for tests and screenshots, without network access.
import { spawnSync } from 'node:child_process';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Path of the browser, if any. */
export function findChromium() {
  if (process.platform === 'win32') return undefined;
  for (const name of NAMES) {
    const { status, stdout } = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' });
    if (status === 0) return stdout.trim();
  }
  return undefined;
}

/** `profile` is a new, empty folder; the caller removes it. */
export async function launchChromium(profile) {
  const executablePath = findChromium();
  if (!executablePath) throw new Error(`none of ${NAMES.join(', ')} is on the PATH`);
  const context = await chromium.launchPersistentContext(profile, { executablePath, args: FLAGS });
  return {
    /** A page in a new context; `options` as for Playwright's `newContext`. */
    newPage: async ({ viewport, colorScheme } = {}) => {
      const page = await context.newPage();
      if (viewport) await page.setViewportSize(viewport);
      if (colorScheme) await page.emulateMedia({ colorScheme });
      return page;
    },
    close: () => context.close(),
  };
}
