// Checks that ops have the same name in every layer: the addon's table, the kernel and the TypeScript function must agree, forward
// comes with backward, and no op is called that the addon does not have.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

function sources(folder, ending) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith(ending))
    .map(entry => ({ name: entry.name, path: join(entry.parentPath, entry.name) }))
    .map(file => ({ ...file, path: file.path.slice(root.length), text: readFileSync(file.path, 'utf8') }));
}

// Clocks and reference measurements are enqueued by name where needed; they are not part of a model. Exchanges between ranks only
// move bytes (src/dist/comm): they have no kernel.
const MEASURES = new Set(['clock', 'fma_peak', 'read_bandwidth']);
const EXCHANGES = new Set([
  'comm_all_to_all_v',
  'comm_all_gather_v',
  'comm_broadcast',
  'comm_barrier',
  'comm_count_ids',
]);

const table = readFileSync(join(root, 'native/binding/src/ops/mod.rs'), 'utf8').replace(
  /#\[cfg\(feature = "probes"\)\]\s*op\(.*\),/g, // for tests, not in the shipped addon
  '',
);
const names = [...table.matchAll(/\bop\(\s*"(\w+)"/g)].map(([, name]) => name);
const known = new Set(names);
const kernels = sources('native/kernels/src', '.rs');
const ops = sources('src/ops', '.ts');
const faults = [];

const camel = name => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const baseOf = name => name.replace(/_(forward|backward)$/, '');

if (known.size !== names.length) faults.push('native/binding/src/ops/mod.rs lists an op twice');
for (const name of names) {
  const base = baseOf(name);
  for (const pass of base === name ? [] : ['forward', 'backward']) {
    if (!known.has(`${base}_${pass}`)) faults.push(`${name}: the addon has no ${base}_${pass}`);
  }
  if (MEASURES.has(name) || EXCHANGES.has(name)) continue;
  const isKernel = ({ path, text }) =>
    base === name
      ? new RegExp(`pub fn ${name}\\b`).test(text)
      : path.endsWith(`/${base}.rs`) || path.endsWith(`/${base}/mod.rs`);
  if (!kernels.some(isKernel)) faults.push(`${name}: no kernel of that name in native/kernels/src`);
  const isOp = new RegExp(`export function ${camel(base)}[<(]`);
  if (!ops.some(({ text }) => isOp.test(text))) {
    faults.push(`${name}: no function ${camel(base)} in src/ops`);
  }
}

const called = new Set();
for (const { path, text } of sources('src', '.ts')) {
  for (const [, name] of text.matchAll(/\.call\('(\w+)'\)/g)) {
    called.add(name);
    if (!known.has(name)) faults.push(`${path}: calls ${name}, which the addon does not have`);
  }
  // Ops that share their arguments name themselves in a field: { op: 'hstu_attention', ... }.
  for (const [, name] of text.matchAll(/\bop: '(\w+)'/g)) {
    for (const op of [name, `${name}_forward`, `${name}_backward`]) if (known.has(op)) called.add(op);
  }
}
for (const name of names) {
  if (!called.has(name) && !MEASURES.has(name)) faults.push(`${name}: no TypeScript calls it`);
}

if (faults.length > 0) {
  console.error(faults.join('\n'));
  process.exit(1);
}
