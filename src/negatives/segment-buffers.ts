// Two buffers used alternately by segments of negatives, across lanes; a lane of one segment uses only the first. A buffer is
// overwritten once the loss has read it; streams wait for that automatically. A separate buffer per segment would not work:
// memory used by two streams is freed only when both have passed, and work is enqueued far ahead of that.

import type { Device } from '../native/device.js';
import type { RowBuffer } from '../ops/fetch-negatives.js';
import type { RowDtype } from '../ops/row-source.js';

export class SegmentBuffers {
  readonly #device: Device;
  readonly dtype: RowDtype;
  readonly #buffers: [RowBuffer | undefined, RowBuffer | undefined] = [undefined, undefined];

  constructor(device: Device, dtype: RowDtype) {
    this.#device = device;
    this.dtype = dtype;
  }

  /** The first or second buffer, with capacity for at least `room` rows. Its previous contents are invalidated. */
  take(which: 0 | 1, room: number, width: number): RowBuffer {
    const known = this.#buffers[which];
    if (known && known.rows.rows >= room && known.rows.cols === width) return known;
    dispose(known);
    const made = { rows: this.#device.tensor([room, width], this.dtype), factors: this.#device.tensor([1, room]) };
    this.#buffers[which] = made;
    return made;
  }

  dispose(): void {
    this.#buffers.forEach(dispose);
    this.#buffers.fill(undefined);
  }
}

function dispose(buffer: RowBuffer | undefined): void {
  buffer?.rows.dispose();
  buffer?.factors.dispose();
}
