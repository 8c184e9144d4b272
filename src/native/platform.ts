// Which prebuilt binary fits this machine: names follow napi-rs, `@turbogr/core-<system>-<processor>[-<ABI>]`. The list of
// targets is in scripts/targets.mjs; a test keeps both in sync.

import { createRequire } from 'node:module';
import { z } from 'zod';

const PACKAGE = z.object({ version: z.string() });

/** Version of this package; its platform packages have the same one. */
export const VERSION = PACKAGE.parse(createRequire(import.meta.url)('../../package.json')).version;

export interface Machine {
  platform: string;
  arch: string;
  /** Whether Linux runs on musl (Alpine) instead of glibc. */
  musl: boolean;
}

export function thisMachine(): Machine {
  const { platform, arch } = process;
  return { platform, arch, musl: platform === 'linux' && glibcVersion() === undefined };
}

/** Version of glibc; undefined on another libc. */
export function glibcVersion(): string | undefined {
  const report = z.object({ header: z.object({ glibcVersionRuntime: z.string().optional() }) });
  return report.parse(process.report.getReport()).header.glibcVersionRuntime;
}

/** `linux-x64-gnu`, `darwin-arm64`, `win32-x64-msvc`. */
export function targetName({ platform, arch, musl }: Machine): string {
  const abi = platform === 'linux' ? (musl ? '-musl' : '-gnu') : platform === 'win32' ? '-msvc' : '';
  return `${platform}-${arch}${abi}`;
}

/** Targets that have a prebuilt package. */
const PREBUILT: readonly string[] = [
  'linux-x64-gnu',
  'linux-arm64-gnu',
  'linux-x64-musl',
  'linux-arm64-musl',
  'darwin-arm64',
  'darwin-x64',
  'win32-x64-msvc',
];

/** The package with the binary for a target; undefined where none is built. */
export function platformPackage(target: string): string | undefined {
  return PREBUILT.includes(target) ? `@turbogr/core-${target}` : undefined;
}
