// A matrix in the device's memory, referenced by a handle. No arithmetic and no data here; data is read through the device.

import type { Dtype } from './dtype.js';

export type Shape = readonly [rows: number, cols: number];

/** `rows`: row-major. `panels`: blocks of 16 columns, each row-major: all rows of the first 16 columns, then of the next. */
export type Layout = 'rows' | 'panels';
/** Columns of a panel. */
export const PANEL = 16;

/** What a tensor needs from its device. */
export interface TensorHome {
  view(handle: number, from: number, cols: number): number;
  range(handle: number, from: number, count: number): number;
  free(handle: number): void;
}

/** Optional properties of a tensor: being a column range, and its layout. */
export interface TensorOrigin<D extends Dtype> {
  root?: Tensor<D>;
  from?: number;
  layout?: Layout;
}

export class Tensor<D extends Dtype = Dtype> {
  readonly #home: TensorHome;
  #views: Tensor<D>[] | undefined;
  #disposed = false;
  readonly handle: number;
  readonly dtype: D;
  readonly rows: number;
  readonly cols: number;
  /** The tensor that this is a column range of; itself if it is whole. */
  readonly root: Tensor<D>;
  /** First column within the root. */
  readonly from: number;
  readonly layout: Layout;

  constructor(home: TensorHome, handle: number, dtype: D, shape: Shape, of: TensorOrigin<D> = {}) {
    this.#home = home;
    this.handle = handle;
    this.dtype = dtype;
    [this.rows, this.cols] = shape;
    this.root = of.root ?? this;
    this.from = of.from ?? 0;
    this.layout = of.layout ?? 'rows';
  }

  get shape(): Shape {
    return [this.rows, this.cols];
  }

  get size(): number {
    return this.rows * this.cols;
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Columns [from, from + cols) as a view, which is disposed together with this tensor. */
  columns(from: number, cols: number): Tensor<D> {
    const handle = this.#home.view(this.handle, from, cols);
    const origin = { root: this.root, from: this.from + from, layout: this.layout };
    const view = new Tensor(this.#home, handle, this.dtype, [this.rows, cols], origin);
    (this.#views ??= []).push(view);
    return view;
  }

  /** Elements [from, from + count) in row-major order as a view of one row, disposed together with this tensor. */
  range(from: number, count: number): Tensor<D> {
    const part = new Tensor(this.#home, this.#home.range(this.handle, from, count), this.dtype, [1, count]);
    (this.#views ??= []).push(part);
    return part;
  }

  /** Frees the memory once all enqueued commands have used it. Idempotent. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    for (const view of this.#views ?? []) view.dispose();
    this.#home.free(this.handle);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Narrows the dtypes that a table may have. */
export function isF32(tensor: Tensor<'f32' | 'f16' | 'bf16'>): tensor is Tensor<'f32'> {
  return tensor.dtype === 'f32';
}
