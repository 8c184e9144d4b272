// This process as one of several ranks: joining, splitting communicators, gathering host bytes, watching, leaving. Exchanges
// between tensors are ops on the `comm` stream (native/binding/src/ops/comm.rs).

import { type NativeFault, TurboError } from '../tensor/turbo-error.js';
import { loadAddon, type RankGroup, type RankWorld } from './addon.js';

export type { RankGroup, RankWorld } from './addon.js';

/** Interval at which JavaScript reports that it is alive. */
const PULSE_MS = 250;
let pulse: NodeJS.Timeout | undefined;

/** Joins the world of ranks through the shim at `path`; returns when every rank has. Once per process. */
export function openRanks(path: string): RankWorld {
  return accept(loadAddon().rankOpen(path));
}

/** Splits `comm` by colour, or by node without a colour. Collective. */
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
  /** Seconds for which JavaScript may be blocked before the job is ended. */
  patience: number;
  /** Report faults as JSON, for the launcher, instead of as text. */
  json: boolean;
  /** Exit code of a job that a fault ended. */
  code: number;
}

/** From now on the job ends if this rank hangs or its neighbour is silent. */
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
