// npm's `prepare`: what makes a clone, `npm pack` in it, or an install from git usable. TypeScript is
// compiled and the dashboard built; the native core is built where there is cargo, or installed prebuilt. Without either
// it still ends well: the command says what to do.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const options = { cwd: root, stdio: ['ignore', 2, 2] }; // stdout belongs to npm: `npm pack` prints the file's name there
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
