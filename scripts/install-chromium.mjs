// Installs the browser for the dashboard tests, only where that is safe: on a Debian CI machine (CI=true) with root access. Elsewhere
// it does nothing, and the tests are skipped with a reason.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { findChromium } from './chromium.mjs';

const allowed = process.env.CI === 'true' && process.getuid?.() === 0 && existsSync('/etc/debian_version');

if (allowed && !findChromium()) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = args => spawnSync('apt-get', ['-q', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] }).status;
  apt(['update']);
  if (apt(['install', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core']) !== 0)
    console.error('install-chromium: apt-get failed; the tests in a browser will skip');
}
