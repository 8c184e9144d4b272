// Builds the addon: cargo compiles native/binding, the library is copied to native/turbogr.node (the path the loader
// opens). Needs cargo and a C compiler (the linker); everything else comes from the crates in Cargo.lock.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

if (spawnSync('cargo', ['--version']).status !== 0) {
  console.error(
    'turbogr: cargo was not found. Install Rust (https://rustup.rs, or your system package "cargo"), then run: npm run build:native',
  );
  process.exit(1);
}

const build = spawnSync('cargo', ['build', '--release', '--locked', '--quiet', '-p', 'turbogr-binding'], {
  cwd: root,
  stdio: 'inherit',
});
if (build.status !== 0) {
  console.error(
    'turbogr: the native core did not build; the first compiler error above is the cause. If a linker is missing, install a C compiler (Debian: apt-get install build-essential).',
  );
  process.exit(build.status ?? 1);
}

const library =
  { darwin: 'libturbogr_binding.dylib', win32: 'turbogr_binding.dll' }[process.platform] ?? 'libturbogr_binding.so';
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const addon = join(root, 'native', 'turbogr.node');
mkdirSync(join(root, 'native'), { recursive: true });
// A new inode and a rename: a process that has the old addon mapped keeps it.
copyFileSync(join(target, 'release', library), `${addon}.${process.pid}`);
renameSync(`${addon}.${process.pid}`, addon);
