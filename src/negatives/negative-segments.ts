// Double-buffered segments of a lane's negatives: while the loss computes with one segment, the rows of the next are fetched.
// Memory is that of two segments, independent of R. If all distinct rows fit into that, each is fetched once for the whole
// lane, before the loss begins.
//
// P positions, R draws each, S positions of a segment, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { fetchNegatives, type Segment, type Segments } from '../ops/fetch-negatives.js';
import type { RowDtype } from '../ops/row-source.js';
import type { Tensor } from '../tensor/tensor.js';
import type { SegmentBuffers } from './segment-buffers.js';

export interface SegmentOptions {
  device: Device;
  buffers: SegmentBuffers;
  /** The table, or rows staged from it. */
  from: Tensor<RowDtype>;
  /** Row indices into `from`; a pool is one position. */
  ids: Tensor<'i32'>; // [P, R]
  /** S; 0 for all positions at once. Fewer segments are used if they need no more memory. */
  size: number;
  normalizedEps?: number | undefined;
  stream: StreamName;
}

export class NegativeSegments implements Segments {
  readonly #options: SegmentOptions;
  readonly #places: Tensor<'i32'>;
  /** Positions per segment. */
  readonly #size: number;
  readonly #fetched: Segment[] = [];
  #next = 0;
  #count = 0;

  /** Fetches the first two segments at once. */
  constructor(options: SegmentOptions) {
    const { device, from, ids, size } = options;
    this.#options = options;
    this.#places = device.tensor(ids.shape, 'i32');
    this.#size = size === 0 || from.rows <= 2 * size * ids.cols ? ids.rows : size;
    this.#fetch();
    this.#fetch();
  }

  get rounded(): boolean {
    return this.#options.buffers.dtype === 'f16';
  }

  /** A segment is valid until the next one is requested; then its buffer is reused for the one after that. */
  *[Symbol.iterator](): Iterator<Segment> {
    for (let segment = this.#fetched.shift(); segment; segment = this.#fetched.shift()) {
      yield segment;
      this.#fetch();
    }
  }

  dispose(): void {
    this.#places.dispose();
  }

  #fetch(): void {
    const { device, buffers, ids, from: table, stream, normalizedEps } = this.#options;
    const from = this.#next;
    const count = Math.min(this.#size, ids.rows - from);
    if (count <= 0) return;
    this.#next += count;
    const room = Math.max(1, Math.min(count * ids.cols, table.rows));
    const into = buffers.take(this.#count++ % 2 === 0 ? 0 : 1, room, table.cols);
    const positions = { from, count };
    const options = { from: table, ids, positions, normalizedEps, into, places: this.#places };
    this.#fetched.push({ ...positions, fetched: fetchNegatives(device, options, stream) });
  }
}
