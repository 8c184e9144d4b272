// Two buffers that segments of negatives take in turn, lane after lane; a lane of one segment uses the first alone. A
// buffer is written again once the loss has read it: streams wait for that by themselves. Buffers of their own for each
// segment would not do: memory that two streams use goes back only when one of them has passed, and work is enqueued far
// ahead of that.

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

  /** The first or the second buffer, with room for so many rows at least. What was in it is read no more. */
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
