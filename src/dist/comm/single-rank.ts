// A world of one rank: needs no MPI.

import type { Communicator } from './communicator.js';
import { StreamExchanges } from './stream-exchanges.js';

export class SingleRank extends StreamExchanges implements Communicator {
  readonly rank = 0;
  readonly size = 1;
  protected readonly comm = 0;

  split(): Communicator {
    return this;
  }

  node(): Communicator {
    return this;
  }

  gather(data: Uint8Array): Promise<Uint8Array[]> {
    return Promise.resolve([data]);
  }
}
