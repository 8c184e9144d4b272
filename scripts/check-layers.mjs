// Enforces the layers of ARCHITECTURE.md: imports go down only, and siblings do not import each other.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const src = fileURLToPath(new URL('../src', import.meta.url));
const layers = [
  ['util', 'events'],
  ['config', 'tensor'],
  ['native'],
  ['ops'],
  ['nn', 'optim', 'data', 'dist', 'negatives'],
  ['train', 'eval'],
  ['view'],
  ['jobs'],
  ['bench', 'server', 'ui', 'plan'],
  ['cli', 'index.ts'],
];
const level = new Map(layers.flatMap((names, depth) => names.map(name => [name, depth])));

const faults = [];
for (const entry of readdirSync(src, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !entry.name.endsWith('.ts')) continue;
  const file = join(entry.parentPath, entry.name);
  const home = relative(src, file).split('/')[0];
  if (!level.has(home)) faults.push(`src/${relative(src, file)}: "${home}" is not a layer of scripts/check-layers.mjs`);
  for (const [, target] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)) {
    const other = relative(src, resolve(dirname(file), target))
      .split('/')[0]
      .replace(/^index\.js$/, 'index.ts');
    if (other === home || other === '..') continue;
    if (!(level.get(other) < level.get(home)))
      faults.push(`src/${relative(src, file)} (${home}) imports ${target} (${other}): imports go down only`);
  }
}
if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exit(1);
}
