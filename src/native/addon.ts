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

/** A device is a number, as is a tensor. */
export interface Addon {
  /** `values` is where `submit` finds its arguments; it must not be detached. */
  open(threads: number, portable: boolean, values: Float64Array): number | Refusal;
  close(device: number): void;
  alloc(device: number, dtype: number, rows: number, cols: number, panels: boolean): number | Refusal;
  view(device: number, handle: number, from: number, cols: number): number | Refusal;
  free(device: number, handle: number): Refusal | null;
  upload(device: number, stream: number, handle: number, data: ArrayBufferView, finite: boolean): Refusal | null;
  read(device: number, stream: number, handle: number): Promise<ArrayBuffer | Refusal>;
  submit(device: number, stream: number, op: number, count: number): Refusal | null;
  record(device: number, stream: number): number | Refusal;
  wait(device: number, stream: number, event: number): Refusal | null;
  sync(device: number, stream: number): Promise<Refusal | undefined>;
  stats(device: number): Stats | Refusal;
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
