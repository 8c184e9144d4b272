// The addon with ops for tests only: `panic`, `delay`, and skipping single automatic waits. Built if it is older than the sources
// of the native core.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Addon, loadAddon } from '../../src/native/addon.js';

export interface Probes extends Addon {
  /** Leaves out one of the automatic waits that follow, by index, or none. Returns how many there were since the last call. */
  leaveOutWait(index?: number): number;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const path = join(root, 'native', 'turbogr-probes.node');

function newestSource(): number {
  const folders = ['native/binding', 'native/kernels'].map(folder => join(root, folder));
  const files = folders.flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(file => join(folder, file)),
  );
  return Math.max(...files.filter(file => /\.(rs|toml)$/.test(file)).map(file => statSync(file).mtimeMs));
}

export function loadProbes(): Probes {
  if (!existsSync(path) || statSync(path).mtimeMs < newestSource()) {
    execFileSync(process.execPath, [join(root, 'scripts', 'build-native.mjs'), '--probes'], { stdio: 'inherit' });
  }
  const addon = loadAddon(path);
  if (!('leaveOutWait' in addon)) throw new Error(`${path} was built without probes`);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon's verbs come without types
  return addon as Probes;
}
