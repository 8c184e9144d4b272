// Packs the tarballs of a release: the main package, or the platform package around a built addon. The platform packages are listed
// as optional dependencies only here, so that a clone's lock file contains no unpublished ones.
//
//   node scripts/pack.mjs main [--out folder]
//   node scripts/pack.mjs linux-x64-gnu [--addon native/turbogr.node] [--out folder]
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { packageName, platformManifest, publishedManifest, TARGETS } from './targets.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const windows = process.platform === 'win32';

/** Path of the main package's tarball. */
export function packMain(out) {
  return withStage(stage => {
    const { files } = listFiles();
    for (const { path } of files.filter(({ path }) => path !== 'native/turbogr.node')) {
      cpSync(join(root, path), join(stage, path), { recursive: true });
    }
    writeManifest(stage, publishedManifest());
    return pack(stage, out);
  });
}

/** Path of a platform package's tarball: the addon without its symbols. */
export function packPlatform(name, { addon = join(root, 'native', 'turbogr.node'), out }) {
  const target = TARGETS.find(entry => entry.name === name);
  if (!target) throw new Error(`unknown platform "${name}"; there are ${TARGETS.map(entry => entry.name).join(', ')}`);
  return withStage(stage => {
    copyFileSync(addon, join(stage, 'turbogr.node'));
    // MSVC keeps symbols in a separate file.
    if (target.os === 'linux') execFileSync('strip', ['--strip-unneeded', join(stage, 'turbogr.node')]);
    if (target.os === 'darwin') execFileSync('strip', ['-x', join(stage, 'turbogr.node')]);
    copyFileSync(join(root, 'LICENSE'), join(stage, 'LICENSE'));
    writeFileSync(join(stage, 'README.md'), `# ${packageName(target)}\n\n${platformManifest(target).description}\n`);
    writeManifest(stage, platformManifest(target));
    return pack(stage, out);
  });
}

/** The files that `npm pack` would include from the clone. */
export function listFiles() {
  return JSON.parse(npm(['pack', '--dry-run', '--json', '--ignore-scripts'], root))[0];
}

function withStage(work) {
  const stage = mkdtempSync(join(tmpdir(), 'turbogr-pack-'));
  try {
    return work(stage);
  } finally {
    rmSync(stage, { recursive: true });
  }
}

function writeManifest(stage, manifest) {
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function pack(stage, out) {
  mkdirSync(out, { recursive: true });
  const [{ filename }] = JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', out], stage));
  return join(out, filename);
}

function npm(args, cwd) {
  return execFileSync('npm', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: windows,
    maxBuffer: 1e8,
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { out: { type: 'string', default: '.' }, addon: { type: 'string' } },
  });
  const out = resolve(values.out);
  const addon = values.addon && resolve(values.addon);
  for (const what of positionals) {
    console.log(what === 'main' ? packMain(out) : packPlatform(what, { out, ...(addon && { addon }) }));
  }
}
