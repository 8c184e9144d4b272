// A matrix in the device's memory, by handle. No arithmetic here, and no data: that is read through the device.

import type { Dtype } from './dtype.js';

export type Shape = readonly [rows: number, cols: number];

/** What a tensor needs of the device that holds it. */
export interface TensorHome {
  view(handle: number, from: number, cols: number): number;
  free(handle: number): void;
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

  constructor(home: TensorHome, handle: number, dtype: D, shape: Shape, range?: { root: Tensor<D>; from: number }) {
    this.#home = home;
    this.handle = handle;
    this.dtype = dtype;
    [this.rows, this.cols] = shape;
    this.root = range?.root ?? this;
    this.from = range?.from ?? 0;
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
    const range = { root: this.root, from: this.from + from };
    const view = new Tensor(this.#home, handle, this.dtype, [this.rows, cols], range);
    (this.#views ??= []).push(view);
    return view;
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

/** Tells the two kinds of rows apart that a table may have. */
export function isF32(tensor: Tensor<'f32' | 'f16'>): tensor is Tensor<'f32'> {
  return tensor.dtype === 'f32';
}
