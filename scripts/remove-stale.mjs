// Removes compiler output in dist whose source no longer exists: it would still be importable, and packed.
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

if (existsSync(dist)) removeStale(dist);

function removeStale(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (path === join(dist, 'web') || path === join(dist, 'docs')) continue; // not compiler output
    if (entry.isDirectory()) {
      removeStale(path);
      if (readdirSync(path).length === 0) rmdirSync(path);
    } else if (/\.(d\.ts|js|js\.map)$/.test(entry.name)) {
      const source = relative(dist, path).replace(/\.(d\.ts|js|js\.map)$/, '.ts');
      if (!existsSync(join(root, 'src', source))) rmSync(path);
    }
  }
}
