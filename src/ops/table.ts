// An embedding table. Its gradient is not a matrix but a list of contributions, which `embeddingUpdate` sums row by row;
// only losses over the whole table (and dense optimisers) fill a dense gradient.
//
// V rows, D width, T source rows, P ids to a source row.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';

/** Row ids[t, p] gets scale * coef[t, p] * source[t]. */
export interface Contribution {
  /** [T, P]; -1 adds nothing. */
  readonly ids: Tensor<'i32'>;
  /** [T, D] */
  readonly source: Tensor<'f32'>;
  /** [T, P], 1 when absent. */
  readonly coef?: Tensor<'f32'>;
  readonly scale: number;
  /** The gradient is that of row / max(|row|, this), and is taken through it after summing. */
  readonly normalizedEps?: number;
  /** Lets go of the tensors it was given. */
  release(): void;
}

/** How rows are stored. */
export type RowDtype = 'f32' | 'f16';

export class Table<D extends RowDtype = RowDtype> {
  readonly name: string;
  /** [V, D] */
  readonly value: Tensor<D>;
  readonly #device: Device;
  #contributions: Contribution[] = [];
  #buffer: Tensor<'f32'> | undefined;
  #written = false;

  constructor(device: Device, name: string, value: Tensor<D>) {
    this.#device = device;
    this.name = name;
    this.value = value;
  }

  get contributions(): readonly Contribution[] {
    return this.#contributions;
  }

  /** Takes part in the next update; released by `clearGrad`. */
  contribute(contribution: Contribution): void {
    this.#contributions.push(contribution);
  }

  /** Dense gradient since `clearGrad`, without the contributions; absent when there is none. */
  get grad(): Tensor<'f32'> | undefined {
    return this.#written ? this.#buffer : undefined;
  }

  /** Where the next dense gradient goes: the first one overwrites, later ones add. */
  gradTarget(): GradTarget {
    const accumulate = this.#written;
    this.#written = true;
    return { to: (this.#buffer ??= this.#device.tensor(this.value.shape)), accumulate };
  }

  /** Forgets the contributions, once they are in a dense gradient or applied, and lets go of what they held. */
  clearContributions(): void {
    for (const contribution of this.#contributions) contribution.release();
    this.#contributions = [];
  }

  /** Forgets all of the gradient. */
  clearGrad(): void {
    this.clearContributions();
    this.#written = false;
  }

  dispose(): void {
    this.clearGrad();
    this.value.dispose();
    this.#buffer?.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
