// Collectives between ranks: they move bytes and never add. Sums are computed by us, in an order that does not depend on the
// number of ranks.
//
// Exchanges between tensors are enqueued on the `comm` stream, like any op. `gather` moves small host data, independently of
// the streams and in its own order. Every rank of a communicator makes the same calls in the same order.

import type { Device } from '../../native/device.js';
import type { Tensor } from '../../tensor/tensor.js';

export interface AllToAllV {
  /** Parts for rank 0, 1, ..., one after the other. */
  send: Tensor;
  /** [size] units for each rank. */
  sendCounts: Tensor<'i64'>;
  receive: Tensor;
  /** [size] units from each rank. */
  receiveCounts: Tensor<'i64'>;
  /** Elements of a unit: 1, or the width of a row. */
  unit: number;
}

export interface AllGatherV {
  /** This rank's part is at its beginning; absent if it is already in place in `receive`. */
  send?: Tensor;
  receive: Tensor;
  /** [size] units of each rank. */
  counts: Tensor<'i64'>;
  unit: number;
}

/** The first `counts[index]` units of a tensor. */
export interface CountedPart {
  counts: Tensor<'i64'>;
  index: number;
  /** Elements of a unit: 1, or the width of a row. */
  unit: number;
}

export interface Communicator {
  readonly rank: number;
  readonly size: number;
  /** Ranks with the same colour, in the order of `key`. Collective. */
  split(colour: number, key: number): Communicator;
  /** Ranks that share memory. Collective. */
  node(): Communicator;
  /** Every rank's bytes, in the order of the ranks. */
  gather(data: Uint8Array): Promise<Uint8Array[]>;
  allToAllV(device: Device, exchange: AllToAllV): void;
  allGatherV(device: Device, exchange: AllGatherV): void;
  /** Copies `root`'s tensor to all ranks: all of it, or the counted part. */
  broadcast(device: Device, data: Tensor, root: number, part?: CountedPart): void;
  barrier(device: Device): void;
}

/** Every rank's value, in the order of the ranks; serialised as JSON. */
export async function gatherJson<T>(ranks: Communicator, value: T): Promise<T[]> {
  const parts = await ranks.gather(new TextEncoder().encode(JSON.stringify(value)));
  return parts.map(part => {
    const theirs: T = JSON.parse(new TextDecoder().decode(part));
    return theirs;
  });
}
