// Exchanges between tensors of different ranks, enqueued on the `comm` stream. A world of one rank copies.

import type { Device } from '../../native/device.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { AllGatherV, AllToAllV, CountedPart } from './communicator.js';

export abstract class StreamExchanges {
  abstract readonly rank: number;
  /** The communicator's number in the addon. */
  protected abstract readonly comm: number;

  allToAllV(device: Device, { send, sendCounts, receive, receiveCounts, unit }: AllToAllV): void {
    const call = device.call('comm_all_to_all_v').number(this.comm).number(unit);
    call.tensor(send).tensor(sendCounts).tensor(receive).tensor(receiveCounts).submit('comm');
  }

  allGatherV(device: Device, { send, receive, counts, unit }: AllGatherV): void {
    const call = device.call('comm_all_gather_v').number(this.comm).number(this.rank).number(unit);
    call.tensor(send).tensor(receive).tensor(counts).submit('comm');
  }

  broadcast(device: Device, data: Tensor, root: number, part?: CountedPart): void {
    const call = device.call('comm_broadcast').number(this.comm).number(root);
    call.number(part?.unit ?? 1).number(part?.index ?? 0);
    call.tensor(data).tensor(part?.counts).submit('comm');
  }

  barrier(device: Device): void {
    device.call('comm_barrier').number(this.comm).submit('comm');
  }
}
