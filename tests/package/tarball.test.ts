// What `npm pack` takes of a clone: everything the command and a build of the core need, and nothing else.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { listFiles } from '../../scripts/pack.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { files }: { files: { path: string }[] } = listFiles();
const paths = new Set(files.map(({ path }) => path));

test('every module is there with its types, and none whose source is gone', () => {
  const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.ts'))
    .map(path => path.replaceAll('\\', '/').replace(/\.ts$/, ''));
  const packed = [...paths].filter(path => path.startsWith('dist/') && !path.startsWith('dist/web/')).sort();
  expect(packed).toEqual(sources.flatMap(path => [`dist/${path}.d.ts`, `dist/${path}.js`]).sort());
});

test('the dashboard is there, built', () => {
  const web = [...paths].filter(path => path.startsWith('dist/web/')).map(path => path.replace(/.*\./, '.'));
  expect(web.sort()).toEqual(['.css', '.html', '.js']);
});

test('the sources of the core are there, so that it can be built where no binary fits', () => {
  for (const path of ['Cargo.toml', 'Cargo.lock', 'scripts/build-native.mjs', 'native/binding/build.rs']) {
    expect(paths).toContain(path);
  }
  // Manifests name their examples, and cargo refuses a manifest whose examples are missing.
  expect(paths).toContain('native/lab/attention.rs');
});

test('no tests, no build products, no development files', () => {
  const unwanted = /(^|\/)(tests?|target|node_modules|\.github|\.ci)(\/|$)|tests\.rs$|\.tsbuildinfo$|\.map$/;
  expect([...paths].filter(path => unwanted.test(path))).toEqual([]);
});
