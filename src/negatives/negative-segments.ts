// A lane's negatives as segments that follow one another through two buffers: while the loss computes with one, the rows
// of the next are fetched. Memory is that of two segments, whatever R.
//
// P positions, R draws each, S positions of a segment, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { type FetchedRows, fetchNegatives, type Segment } from '../ops/fetch-negatives.js';
import type { RowDtype } from '../ops/row-source.js';
import type { Tensor } from '../tensor/tensor.js';

export interface SegmentOptions {
  device: Device;
  /** The table, or rows staged from it. */
  from: Tensor<RowDtype>;
  /** Rows of `from`; a pool is one position. */
  ids: Tensor<'i32'>; // [P, R]
  dtype: RowDtype;
  /** S; 0 for all positions at once. */
  size: number;
  normalizedEps?: number | undefined;
  stream: StreamName;
}

/** Segments fetched beyond the one in use. */
const AHEAD = 1;

export class NegativeSegments implements Iterable<Segment> {
  readonly #options: SegmentOptions;
  readonly #places: Tensor<'i32'>;
  readonly #fetched: (Segment & { fetched: FetchedRows })[] = [];
  #next = 0;

  /** Fetches the first segments at once. */
  constructor(options: SegmentOptions) {
    this.#options = options;
    this.#places = options.device.tensor(options.ids.shape, 'i32');
    for (let i = 0; i <= AHEAD; i++) this.#fetch();
  }

  /** Each segment is valid until the next one is asked for. */
  *[Symbol.iterator](): Iterator<Segment> {
    for (let segment = this.#fetched.shift(); segment; segment = this.#fetched.shift()) {
      yield segment;
      release(segment);
      this.#fetch();
    }
  }

  dispose(): void {
    for (const segment of this.#fetched) release(segment);
    this.#fetched.length = 0;
    this.#places.dispose();
  }

  #fetch(): void {
    const { device, ids, size, stream, ...options } = this.#options;
    const from = this.#next;
    const count = Math.min(size || ids.rows, ids.rows - from);
    if (count <= 0) return;
    this.#next += count;
    const positions = { from, count };
    const fetched = fetchNegatives(device, { ...options, ids, positions, places: this.#places }, stream);
    this.#fetched.push({ ...positions, fetched });
  }
}

function release({ fetched }: { fetched: FetchedRows }): void {
  fetched.rows.dispose();
  fetched.factors.dispose();
}
