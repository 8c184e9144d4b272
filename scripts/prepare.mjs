// npm's `prepare` script, for a clone, `npm pack` in it, or an install from git: compiles TypeScript, builds the dashboard, and builds
// the native core with cargo or installs a prebuilt one. Without either it still succeeds: the command then says what to do.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const options = { cwd: root, stdio: ['ignore', 2, 2] }; // stdout is reserved for npm: `npm pack` prints the file name there
const node = (...args) => spawnSync(process.execPath, args, options).status === 0;

const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
if (!existsSync(tsc)) {
  const install = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', install, { ...options, shell: process.platform === 'win32' });
  if (status !== 0) process.exit(1);
}
if (!node(join('scripts', 'remove-stale.mjs')) || !node(tsc, '-b')) process.exit(1);
if (!node(join('node_modules', 'vite', 'bin', 'vite.js'), 'build', 'web', '--logLevel', 'warn')) process.exit(1);
if (!node(join('scripts', 'build-native.mjs'))) {
  console.error('turbogr: the native core is still missing; the message above says how to get it');
}
