// Double-buffered segments of a lane's negatives: while the loss computes with one segment, the rows of the next are fetched.
// Memory is that of two segments, independent of R. If all distinct rows fit into that, each is fetched once for the whole
// lane, before the loss begins.
//
// P positions, R draws each, S positions of a segment, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { fetchNegatives, type RowBuffer, type Segment, type Segments } from '../ops/fetch-negatives.js';
import type { RowDtype } from '../ops/row-source.js';
import { Tensor } from '../tensor/tensor.js';
import type { SegmentBuffers } from './segment-buffers.js';
import { positionsPerSegment } from './segment-size.js';

/** A segment's rows, to be fetched from elsewhere. */
export interface WantedRows {
  /** Number of the segment. */
  readonly number: number;
  readonly ids: Tensor<'i32'>; // [1, S R]
  /** Destination of the distinct rows, in any order, with their factors. */
  readonly into: RowBuffer;
  /** Output: the index of each draw's row. */
  readonly places: Tensor<'i32'>; // [1, S R]
}

/** Rows that other ranks have. They normalise them too. */
export interface RemoteRows {
  readonly rows: number;
  readonly cols: number;
  fetch(wanted: WantedRows): void;
}

export interface SegmentOptions {
  device: Device;
  buffers: SegmentBuffers;
  /** The table, or rows staged from it. */
  from: Tensor<RowDtype> | RemoteRows;
  /** Row indices into `from`; a pool is one position. */
  ids: Tensor<'i32'>; // [P, R]
  /** S; 0 for all positions at once. Fewer segments are used if they need no more memory. */
  size: number;
  normalizedEps?: number | undefined;
  stream: StreamName;
}

export class NegativeSegments implements Segments {
  readonly #options: SegmentOptions;
  /** Of the segment that the loss reads, and of the next. A loss would wait for the fetch after next if they shared a tensor. */
  readonly #places: readonly Tensor<'i32'>[];
  /** Positions per segment. */
  readonly #size: number;
  readonly #fetched: Segment[] = [];
  #count = 0;

  /** Fetches the first two segments at once. */
  constructor(options: SegmentOptions) {
    const { device, from, ids, size } = options;
    this.#options = options;
    this.#size = positionsPerSegment({ positions: ids.rows, draws: ids.cols, rows: from.rows }, size);
    const buffers = this.#size < ids.rows ? 2 : 1;
    this.#places = Array.from({ length: buffers }, () => device.tensor([this.#size, ids.cols], 'i32'));
    this.#fetch();
    this.#fetch();
  }

  /** Segments fetched so far. */
  get count(): number {
    return this.#count;
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
    for (const places of this.#places) places.dispose();
  }

  #fetch(): void {
    const { device, buffers, ids, from: table, stream, normalizedEps } = this.#options;
    const number = this.#count;
    const from = number * this.#size;
    const count = Math.min(this.#size, ids.rows - from);
    if (count <= 0) return;
    this.#count++;
    const which = number % 2 === 0 ? 0 : 1;
    const room = Math.max(1, Math.min(count * ids.cols, table.rows));
    const into = buffers.take(which, room, table.cols);
    const positions = { from, count };
    const places = this.#places[which]!;
    if (table instanceof Tensor)
      fetchNegatives(device, { from: table, ids, positions, normalizedEps, into, places }, stream);
    else {
      const drawn = ids.range(from * ids.cols, count * ids.cols);
      table.fetch({ number, ids: drawn, into, places: places.range(0, drawn.size) });
    }
    this.#fetched.push({ ...positions, fetched: { ...into, places } });
  }
}
