// The only access to the addon: finds and loads the binary, and declares the types of its functions (native/binding/src/lib.rs).

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NativeFault } from '../tensor/turbo-error.js';
import { UserError } from '../util/errors.js';
import { type Machine, platformPackage, targetName, thisMachine, VERSION } from './platform.js';

export interface Stats {
  threads: number;
  /** Instruction set of the kernels. */
  isa: string;
  /** Live handles, including views. */
  tensors: number;
  /** Bytes allocated from the system, in use or kept for reuse. */
  reservedBytes: number;
  /** Number of system allocations. */
  systemAllocations: number;
  /** Heap allocations made by stream and worker threads. */
  workerAllocations: number;
  /** Commands enqueued, by stream. */
  commands: number[];
}

/** Spans as columns; times in nanoseconds. */
export interface SpanTable {
  names: string[];
  stream: number[];
  /** Index into `names`. */
  name: number[];
  lane: number[];
  stage: number[];
  start: number[];
  end: number[];
  /** Spans that were overwritten before they were read. */
  lost: number;
}

/** The position of this process among the ranks. */
export interface RankWorld {
  rank: number;
  size: number;
  /** MPI thread support level, 0 to 3. */
  threadLevel: number;
  /** Name and version of the MPI library. */
  library: string;
  /** Host name of each rank. */
  hosts: string[];
}

/** A communicator from a member's point of view; -1 for a rank that joined none. */
export interface RankGroup {
  comm: number;
  rank: number;
  size: number;
}

/** A device is a number, as is a tensor. */
export interface Addon {
  /** `values` is the buffer from which `submit` reads its arguments; it must not be detached. */
  open(threads: number, sparseThreads: number, kernels: string, values: Float64Array): number | NativeFault;
  close(device: number): void;
  alloc(device: number, dtype: number, rows: number, cols: number, panels: boolean): number | NativeFault;
  allocMapped(device: number, folder: string, dtype: number, rows: number, cols: number): number | NativeFault;
  view(device: number, handle: number, from: number, cols: number): number | NativeFault;
  range(device: number, handle: number, from: number, count: number): number | NativeFault;
  free(device: number, handle: number): NativeFault | null;
  upload(device: number, stream: number, handle: number, data: ArrayBufferView, finite: boolean): NativeFault | null;
  read(device: number, stream: number, handle: number): Promise<ArrayBuffer | NativeFault>;
  submit(device: number, stream: number, op: number, count: number): NativeFault | null;
  sync(device: number): Promise<NativeFault | undefined>;
  home(device: number, stream: number | undefined): NativeFault | null;
  tag(device: number, lane: number, stage: number): NativeFault | null;
  recordSpans(device: number, on: boolean): NativeFault | null;
  /** Nanoseconds. */
  spanClock(): number;
  spans(device: number): SpanTable | NativeFault;
  stats(device: number): Stats | NativeFault;
  opNames(): string[];
  mapFile(path: string): ArrayBuffer | NativeFault;
  rankOpen(path: string): RankWorld | NativeFault;
  rankSplit(comm: number, colour: number | null, key: number): RankGroup | NativeFault;
  rankGather(comm: number, size: number, data: Uint8Array): Promise<ArrayBuffer | NativeFault>;
  rankWatch(patience: number, json: boolean, code: number): NativeFault | null;
  rankPulse(): void;
  rankAbort(code: number): void;
  rankClose(): NativeFault | null;
}

/** Minimum Rust version to build the core; a test compares it with Cargo.toml. */
export const RUST_VERSION = '1.89';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LOCAL = join(ROOT, 'native', 'turbogr.node');
const require = createRequire(import.meta.url);

export interface FoundAddon {
  path: string;
  /** A local build, or the platform's package. */
  from: 'local build' | 'package';
}

/** Where the binary is: a local build first, then the platform's package. */
export function findAddon(local: string = LOCAL, given?: Machine): FoundAddon {
  if (existsSync(local)) return { path: local, from: 'local build' };
  const machine = given ?? thisMachine();
  const target = targetName(machine);
  const name = platformPackage(target);
  if (name !== undefined) {
    try {
      return { path: require.resolve(name), from: 'package' };
    } catch {
      // not installed: the message below says what to do
    }
  }
  const cause = name
    ? `${name} is not installed (optional dependencies were left out, or node_modules comes from another system), and there is no local build at ${local}`
    : `there is no prebuilt package for this platform, and no local build at ${local}`;
  throw new UserError('native-missing', `The native core is missing for ${describe(machine)}: ${cause}.`, remedy(name));
}

let loaded: Addon | undefined;

/** Loads the addon once. Other paths are for tests. */
export function loadAddon(local: string = LOCAL): Addon {
  if (loaded && local === LOCAL) return loaded;
  const { path } = findAddon(local);
  try {
    const addon: Addon = require(path);
    if (local === LOCAL) loaded = addon;
    return addon;
  } catch (cause) {
    const machine = thisMachine();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UserError(
      'native-broken',
      `The native core did not load: ${path} on ${describe(machine)}. Cause: ${reason}`,
      remedy(platformPackage(targetName(machine))),
      { cause },
    );
  }
}

function describe(machine: Machine): string {
  return `${targetName(machine)}, Node ${process.versions.node}`;
}

function remedy(name: string | undefined): string {
  const build = `Build it here, with Rust ${RUST_VERSION} or newer (https://rustup.rs; a distribution's cargo is often older) and a C compiler:
    node ${join(ROOT, 'scripts', 'build-native.mjs')}`;
  return name === undefined ? build : `Install it:\n    npm install ${name}@${VERSION}\n  ${build}`;
}
