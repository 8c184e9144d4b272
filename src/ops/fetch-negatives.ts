// Copies the rows of negatives for some positions of a batch: each distinct row once, in f32 or FP16. FP16 rows are scaled by
// powers of two so that small values keep their precision; a factor per row undoes the scaling, and normalises if requested.
// The losses read such a segment instead of the table, see `Segment`.
//
// P positions (tokens, or groups of them) with R draws each, V rows of the table, U maximum distinct rows, D width.

import type { Call, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import type { RowDtype } from './row-source.js';

export interface RowBuffer {
  readonly rows: Tensor<RowDtype>; // [U, D]
  /** Factor for products with each row. */
  readonly factors: Tensor<'f32'>; // [U]
}

/** The rows of a segment's negatives. */
export interface FetchedRows extends RowBuffer {
  /** Index of each draw's row; the segment's positions come first. */
  readonly places: Tensor<'i32'>; // [at least the segment's positions, R]
}

/** The positions that one call of a loss scores, and the rows of their negatives; default: those of the row source. */
export interface Segment {
  readonly from: number;
  readonly count: number;
  readonly fetched?: FetchedRows;
}

/** All positions, in order. */
export interface Segments extends Iterable<Segment> {
  /** Whether rows are fetched in FP16. */
  readonly rounded: boolean;
}

export interface FetchOptions {
  from: Tensor<RowDtype>; // [V, D]
  /** -1: no draw. */
  ids: Tensor<'i32'>; // [P, R]
  positions: { from: number; count: number };
  /** Divide each row by max(|row|, this). */
  normalizedEps?: number | undefined;
  /** Destination of rows and factors, with capacity for all distinct rows. */
  into: RowBuffer;
  /** Destination of the row indices. */
  places: Tensor<'i32'>; // [at least the positions, R]
}

export function fetchNegatives(device: Device, options: FetchOptions, stream?: StreamName): void {
  const { from, ids, positions, normalizedEps, into, places } = options;
  device
    .call('fetch_negatives')
    .tensor(from)
    .tensor(ids)
    .number(positions.from)
    .number(positions.count)
    .number(normalizedEps ?? 0)
    .tensor(places)
    .tensor(into.rows)
    .tensor(into.factors)
    .submit(stream);
}

export interface PickOptions {
  /** The rows that this rank has. */
  from: Tensor<RowDtype>; // [V, D]
  /** In any order. */
  ids: Tensor<'i32'>;
  /** How many ids there are, in parts. */
  counts: Tensor<'i64'>;
  normalizedEps?: number | undefined;
  /** Has capacity for all of them. */
  to: RowBuffer;
}

/** The owner's part of fetching negatives: rows and factors in the order of the ids; the rest is unchanged. */
export function pickNegatives(device: Device, options: PickOptions, stream?: StreamName): void {
  const { from, ids, counts, normalizedEps, to } = options;
  const call = device.call('pick_negatives').tensor(from).tensor(ids).tensor(counts);
  call
    .number(normalizedEps ?? 0)
    .tensor(to.rows)
    .tensor(to.factors)
    .submit(stream);
}

export function writeFetched(call: Call, fetched: FetchedRows | undefined): Call {
  return call.tensor(fetched?.rows).tensor(fetched?.factors).tensor(fetched?.places);
}

export interface SegmentCall {
  /** The positives' rows in the source, if ids are those of the whole table; only with fetched rows. */
  positiveRows?: Tensor<'i32'> | undefined; // [T]
  /** [1, 1] carries the loss from one segment to the next; absent when there is one. */
  sum: Tensor<'i64'> | undefined;
}

export function writeSegment(call: Call, { from, count, fetched }: Segment, { positiveRows, sum }: SegmentCall): Call {
  return writeFetched(call, fetched).tensor(positiveRows).number(from).number(count).tensor(sum);
}
