// Ranks connected by MPI. Each communicator has a second one for host data, so that gathers of JavaScript and exchanges of
// the `comm` stream need no common order.

import { gatherBytes, type RankGroup, splitRanks } from '../../native/ranks.js';
import type { Communicator } from './communicator.js';
import { StreamExchanges } from './stream-exchanges.js';

export class MpiRanks extends StreamExchanges implements Communicator {
  readonly rank: number;
  readonly size: number;
  protected readonly comm: number;
  readonly #control: RankGroup;
  #last: Promise<unknown> = Promise.resolve();

  /** Collective: every member creates one. The world is communicator 0. */
  constructor({ comm, rank, size }: RankGroup) {
    super();
    this.comm = comm;
    this.rank = rank;
    this.size = size;
    this.#control = splitRanks(comm, 0, rank);
  }

  split(colour: number, key: number): Communicator {
    return new MpiRanks(splitRanks(this.comm, colour, key));
  }

  node(): Communicator {
    return new MpiRanks(splitRanks(this.comm, undefined, this.rank));
  }

  /** Serialised: a gather is two exchanges, lengths and bytes, and those of two gathers must not interleave. */
  gather(data: Uint8Array): Promise<Uint8Array[]> {
    const gathered = this.#last.then(() => gatherBytes(this.#control, data));
    this.#last = gathered.catch(() => undefined);
    return gathered;
  }
}
