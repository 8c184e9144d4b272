// Ranks that MPI connects. Each communicator has a twin for host data, so that what JavaScript gathers and what the
// `comm` stream exchanges need no common order.

import { gatherBytes, type RankGroup, splitRanks } from '../../native/ranks.js';
import type { Communicator } from './communicator.js';
import { StreamExchanges } from './stream-exchanges.js';

export class MpiRanks extends StreamExchanges implements Communicator {
  readonly rank: number;
  readonly size: number;
  protected readonly comm: number;
  readonly #control: RankGroup;
  #last: Promise<unknown> = Promise.resolve();

  /** Collective: every member makes one. The world is communicator 0. */
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

  /** One after the other: a gather is two exchanges, lengths and bytes, and those of two gathers must not mix. */
  gather(data: Uint8Array): Promise<Uint8Array[]> {
    const gathered = this.#last.then(() => gatherBytes(this.#control, data));
    this.#last = gathered.catch(() => undefined);
    return gathered;
  }
}
