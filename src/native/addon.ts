// The addon's only door: finds and loads the binary, and types its verbs. What they do: native/binding/src/lib.rs.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Refusal } from '../tensor/turbo-error.js';
import { UserError } from '../util/errors.js';

export interface Stats {
  threads: number;
  /** Instruction set of the kernels. */
  isa: string;
  /** Handles alive, views included. */
  tensors: number;
  /** Bytes asked from the system, in use or kept for reuse. */
  reservedBytes: number;
  /** How often the system was asked for memory. */
  systemAllocations: number;
  /** Heap allocations made by stream and worker threads. */
  workerAllocations: number;
  /** Commands enqueued, by stream. */
  commands: number[];
}

export interface Runtime {
  close(): void;
  alloc(dtype: number, rows: number, cols: number): number | Refusal;
  view(handle: number, from: number, cols: number): number | Refusal;
  free(handle: number): Refusal | null;
  upload(stream: number, handle: number, data: ArrayBufferView, finite: boolean): Refusal | null;
  read(stream: number, handle: number): Promise<ArrayBuffer | Refusal>;
  submit(stream: number, op: number, values: Float64Array, count: number): Refusal | null;
  record(stream: number): number | Refusal;
  wait(stream: number, event: number): Refusal | null;
  sync(stream: number): Promise<Refusal | undefined>;
  stats(): Stats | Refusal;
}

export interface Addon {
  Runtime: { open(threads: number, portable: boolean): Runtime };
  opNames(): string[];
  mapFile(path: string): ArrayBuffer | Refusal;
}

const BINARY = fileURLToPath(new URL('../../native/turbogr.node', import.meta.url));
let loaded: Addon | undefined;

/** Loads the addon, once. `path` is for tests. */
export function loadAddon(path: string = BINARY): Addon {
  if (loaded && path === BINARY) return loaded;
  const tried = `${path} on ${process.platform}-${process.arch}, Node ${process.versions.node}`;
  const remedy = 'Build it for this machine with: npm run build:native';
  if (!existsSync(path)) throw new UserError('native-missing', `The native core is missing: ${tried}.`, remedy);
  try {
    const addon: Addon = createRequire(import.meta.url)(path);
    if (path === BINARY) loaded = addon;
    return addon;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UserError('native-broken', `The native core did not load: ${tried}. Cause: ${reason}`, remedy, { cause });
  }
}
