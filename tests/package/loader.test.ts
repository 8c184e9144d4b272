// Where the native core comes from, and what a person reads when it is not there.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findAddon, loadAddon, RUST_VERSION } from '../../src/native/addon.js';
import { platformPackage, targetName, thisMachine, VERSION } from '../../src/native/platform.js';
import { packageName, platformManifest, publishedManifest, TARGETS } from '../../scripts/targets.mjs';

const ABSENT = join(tmpdir(), 'no-such-addon.node');

test('every platform that is built is one the loader asks for, by the same name', () => {
  for (const target of TARGETS) {
    const name = targetName({ platform: target.os, arch: target.cpu, musl: target.libc === 'musl' });
    expect(name).toBe(target.name);
    expect(platformPackage(name)).toBe(packageName(target));
  }
  const sun = { platform: 'sunos', arch: 'x64', musl: false };
  expect(platformPackage(targetName(sun))).toBeUndefined();
});

test('the published package names all platforms with its own version, and runs no script at install', () => {
  const manifest = publishedManifest();
  expect(manifest.version).toBe(VERSION);
  expect(manifest.optionalDependencies).toEqual(
    Object.fromEntries(TARGETS.map(target => [packageName(target), VERSION])),
  );
  expect(Object.keys(manifest.scripts)).toEqual(['build:native']);
  expect(manifest).not.toHaveProperty('private');
  for (const target of TARGETS) {
    const platform = platformManifest(target);
    expect(platform).toMatchObject({ version: VERSION, engines: manifest.engines, os: [target.os], cpu: [target.cpu] });
    expect(platform).not.toHaveProperty('scripts');
  }
});

test('a missing core is told with platform, cause and the exact commands', () => {
  const linux = { platform: 'linux', arch: 'riscv64', musl: false };
  expect(() => findAddon(ABSENT, linux)).toThrow(
    expect.objectContaining({
      code: 'native-missing',
      message: expect.stringMatching(/linux-riscv64-gnu, Node .*no prebuilt package for this platform/),
      remedy: expect.stringMatching(new RegExp(`Rust ${RUST_VERSION}.*node .*build-native\\.mjs`, 's')),
    }),
  );
  const foreign = process.platform === 'darwin' ? 'win32-x64-msvc' : 'darwin-arm64';
  const machine = { platform: foreign.split('-')[0]!, arch: foreign.split('-')[1]!, musl: false };
  expect(() => findAddon(ABSENT, machine)).toThrow(
    expect.objectContaining({
      message: expect.stringContaining(`@turbogr/core-${foreign} is not installed`),
      remedy: expect.stringContaining(`npm install @turbogr/core-${foreign}@${VERSION}`),
    }),
  );
});

test('a core that does not load is told with the cause', () => {
  const broken = join(tmpdir(), `turbogr-broken-${process.pid}.node`);
  writeFileSync(broken, 'not a library');
  const machine = targetName(thisMachine());
  expect(() => loadAddon(broken)).toThrow(
    expect.objectContaining({
      code: 'native-broken',
      message: expect.stringMatching(new RegExp(`${broken} on ${machine}.*Cause: .+`, 's')),
    }),
  );
  rmSync(broken);
});

test('the Rust version in messages is the one Cargo.toml asks for', () => {
  const manifest = readFileSync(new URL('../../Cargo.toml', import.meta.url), 'utf8');
  expect(manifest).toContain(`rust-version = "${RUST_VERSION}"`);
});
