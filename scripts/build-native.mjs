// Builds the addon: cargo compiles native/binding, the library is copied to native/turbogr.node (the path the loader
// opens). Needs cargo and a C compiler (the linker); everything else comes from the crates in Cargo.lock.
//
// In a clone without cargo the prebuilt package of this platform is installed instead: `node scripts/build-native.mjs`.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [, wanted] = /rust-version = "([\d.]+)"/.exec(readFileSync(join(root, 'Cargo.toml'), 'utf8'));
const REMEDY = `Install Rust ${wanted} or newer from https://rustup.rs (a distribution's cargo is often older), then run: npm run build:native`;

const found = spawnSync('cargo', ['--version'], { cwd: root, encoding: 'utf8' });
if (found.status !== 0) {
  if (installPrebuilt()) process.exit(0);
  fail(
    `cargo was not found, and no prebuilt core for ${process.platform}-${process.arch} could be installed. ${REMEDY}`,
  );
}
const [, version] = /cargo (\S+)/.exec(found.stdout) ?? [];
if (compare(version, wanted) < 0) fail(`cargo ${version} is too old for the native core. ${REMEDY}`);

// With `--probes`: a second addon for tests, native/turbogr-probes.node, which can also panic, delay and skip waits.
const probes = process.argv.includes('--probes');
const target = process.env.TURBOGR_RUST_TARGET; // for cross builds: a Rust target triple
const flags = [...(target ? ['--target', target] : []), ...(probes ? ['--features', 'probes'] : [])];
const build = spawnSync('cargo', ['build', '--release', '--locked', '--quiet', '-p', 'turbogr-binding', ...flags], {
  cwd: root,
  stdio: 'inherit',
});
if (build.status !== 0) {
  fail(
    'the native core did not build; the first compiler error above is the cause. If a linker is missing, install a C compiler (Debian: apt-get install build-essential).',
  );
}

const library =
  { darwin: 'libturbogr_binding.dylib', win32: 'turbogr_binding.dll' }[process.platform] ?? 'libturbogr_binding.so';
const built = join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), target ?? '', 'release', library);
const addon = join(root, 'native', probes ? 'turbogr-probes.node' : 'turbogr.node');
// A new inode and a rename: processes that have mapped the old addon keep it.
copyFileSync(built, `${addon}.${process.pid}`);
renameSync(`${addon}.${process.pid}`, addon);

/** Installs the prebuilt core in a clone, without changing the lock file; returns whether that worked. */
function installPrebuilt() {
  if (!existsSync(join(root, 'scripts', 'targets.mjs'))) return false; // an installed package: npm has chosen already
  const musl = process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime;
  const abi = { linux: musl ? '-musl' : '-gnu', win32: '-msvc' }[process.platform] ?? '';
  const name = `@turbogr/core-${process.platform}-${process.arch}${abi}`;
  if (existsSync(join(root, 'node_modules', name, 'turbogr.node'))) return true;
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  console.error(`turbogr: cargo was not found; installing the prebuilt core ${name}@${version}`);
  const install = ['install', '--no-save', '--no-package-lock', '--no-audit', '--no-fund', `${name}@${version}`];
  const npm = spawnSync('npm', install, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
  return npm.status === 0;
}

function compare(a = '0', b) {
  const [x, y] = [a, b].map(text => text.split('.').map(Number));
  return x[0] - y[0] || x[1] - y[1];
}

function fail(message) {
  console.error(`turbogr: ${message}`);
  process.exit(1);
}
