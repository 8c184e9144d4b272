// This process as one rank of many, as the addon knows it: joining, splitting, bytes of all ranks, watching, leaving.
// Bytes between tensors are ops on the `comm` stream (native/binding/src/ops/comm.rs).

import { type NativeFault, TurboError } from '../tensor/turbo-error.js';
import { loadAddon, type RankGroup, type RankWorld } from './addon.js';

export type { RankGroup, RankWorld } from './addon.js';

/** Between two notes that JavaScript runs. */
const PULSE_MS = 250;
let pulse: NodeJS.Timeout | undefined;

/** Joins the world of ranks through the shim at `path`; returns when every rank has. Once per process. */
export function openRanks(path: string): RankWorld {
  return accept(loadAddon().rankOpen(path));
}

/** Ranks of `comm` with the same colour, or on the same node when there is none. Every rank of `comm` calls it. */
export function splitRanks(comm: number, colour: number | undefined, key: number): RankGroup {
  return accept(loadAddon().rankSplit(comm, colour ?? null, key));
}

/** The bytes of every rank of a communicator, in the order of the ranks. */
export async function gatherBytes({ comm, size }: RankGroup, data: Uint8Array): Promise<Uint8Array[]> {
  const all = accept(await loadAddon().rankGather(comm, size, data));
  const lengths = new BigInt64Array(all, 0, size);
  let at = size * 8;
  return Array.from(lengths, length => {
    const part = new Uint8Array(all, at, Number(length));
    at += Number(length);
    return part;
  });
}

export interface WatchOptions {
  /** Seconds that JavaScript may not run before the job is ended. */
  patience: number;
  /** Faults as JSON for a launcher instead of words for a person. */
  json: boolean;
  /** Exit code of a job that a fault ended. */
  code: number;
}

/** From now on a rank that hangs, or whose neighbour is silent, ends the job. */
export function watchRanks({ patience, json, code }: WatchOptions): void {
  const addon = loadAddon();
  addon.rankPulse();
  pulse = setInterval(() => addon.rankPulse(), PULSE_MS);
  pulse.unref();
  const fault = addon.rankWatch(patience, json, code);
  if (fault !== null) throw new TurboError(fault);
}

/** Ends the job of all ranks. Does not return. */
export function abortRanks(code: number): void {
  loadAddon().rankAbort(code);
}

/** Leaves the world together with all other ranks. */
export function closeRanks(): void {
  clearInterval(pulse);
  const fault = loadAddon().rankClose();
  if (fault !== null) throw new TurboError(fault);
}

function accept<T extends object>(value: T | NativeFault): T {
  if ('kind' in value) throw new TurboError(value);
  return value;
}
