// The platforms with a prebuilt binary, and the package.json of each: for npm to select the right one, and for the release workflow
// to build it.
import { readFileSync } from 'node:fs';

export const TARGETS = [
  { name: 'linux-x64-gnu', os: 'linux', cpu: 'x64', libc: 'glibc', rust: 'x86_64-unknown-linux-gnu' },
  { name: 'linux-arm64-gnu', os: 'linux', cpu: 'arm64', libc: 'glibc', rust: 'aarch64-unknown-linux-gnu' },
  { name: 'linux-x64-musl', os: 'linux', cpu: 'x64', libc: 'musl', rust: 'x86_64-unknown-linux-musl' },
  { name: 'linux-arm64-musl', os: 'linux', cpu: 'arm64', libc: 'musl', rust: 'aarch64-unknown-linux-musl' },
  { name: 'darwin-arm64', os: 'darwin', cpu: 'arm64', rust: 'aarch64-apple-darwin' },
  { name: 'darwin-x64', os: 'darwin', cpu: 'x64', rust: 'x86_64-apple-darwin' },
  { name: 'win32-x64-msvc', os: 'win32', cpu: 'x64', rust: 'x86_64-pc-windows-msvc' },
];

export const packageName = target => `@turbogr/core-${target.name}`;

export const mainManifest = () => JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

export function platformManifest(target) {
  const { version, license, engines } = mainManifest();
  return {
    name: packageName(target),
    version,
    description: `Native core of turbogr for ${target.name}; installed with it, not by itself.`,
    license,
    engines,
    os: [target.os],
    cpu: [target.cpu],
    ...(target.libc && { libc: [target.libc] }),
    main: 'turbogr.node',
    files: ['turbogr.node'],
    ...publishing(),
  };
}

/** Provenance binds a package to the repository that built it, so the workflow's repository is named. */
function publishing() {
  const { GITHUB_REPOSITORY: repository } = process.env;
  const url = `git+https://github.com/${repository}.git`;
  return {
    ...(repository && { repository: { type: 'git', url } }),
    publishConfig: { access: 'public', provenance: true },
  };
}

/**
 * The published package.json: with the platform packages, without scripts that only work in a clone. The clone's package.json is
 * private, so that only the release workflow can publish.
 */
export function publishedManifest() {
  const { scripts, devDependencies: _none, private: _clone, ...manifest } = mainManifest();
  return {
    ...manifest,
    scripts: { 'build:native': scripts['build:native'] },
    optionalDependencies: Object.fromEntries(TARGETS.map(target => [packageName(target), manifest.version])),
    ...publishing(),
  };
}
