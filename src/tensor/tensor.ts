// A matrix in the device's memory, by handle. No arithmetic here, and no data: that is read through the device.

import type { Dtype } from './dtype.js';

export type Shape = readonly [rows: number, cols: number];

/** Row after row; or all rows of the first sixteen columns, then those of the next sixteen. */
export type Layout = 'rows' | 'panels';

/** What a tensor needs of the device that holds it. */
export interface TensorHome {
  view(handle: number, from: number, cols: number): number;
  range(handle: number, from: number, count: number): number;
  free(handle: number): void;
}

/** What is not usual about a tensor: that it is a column range, or its layout. */
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
  /** The tensor whose columns these are; itself when it is whole. */
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

  /** Columns [from, from + cols) as a tensor that shares the memory. It goes when this one does. */
  columns(from: number, cols: number): Tensor<D> {
    const handle = this.#home.view(this.handle, from, cols);
    const origin = { root: this.root, from: this.from + from, layout: this.layout };
    const view = new Tensor(this.#home, handle, this.dtype, [this.rows, cols], origin);
    (this.#views ??= []).push(view);
    return view;
  }

  /** Elements [from, from + count) in the order of the rows, as one row that shares the memory. It goes when this one does. */
  range(from: number, count: number): Tensor<D> {
    const part = new Tensor(this.#home, this.#home.range(this.handle, from, count), this.dtype, [1, count]);
    (this.#views ??= []).push(part);
    return part;
  }

  /** Gives the memory back as soon as the commands already enqueued have used it. Twice is once. */
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

/** Tells the kinds of rows apart that a table may have. */
export function isF32(tensor: Tensor<'f32' | 'f16' | 'bf16'>): tensor is Tensor<'f32'> {
  return tensor.dtype === 'f32';
}
