// An embedding table. Its gradient consists of contributions that are summed by row later; only losses over the whole table
// (and dense optimisers) use a dense gradient.
//
// V rows, D width.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { type RowShard, WHOLE } from '../util/row-shard.js';
import { DenseGradient } from './dense-gradient.js';
import { RowGradient } from './row-gradient.js';
import type { Contribution, RowDtype, RowSource } from './row-source.js';

/** Storage of a table's rows. */
export interface TablePlace {
  readonly mappedIn: string | undefined;
  readonly vocabulary: number;
  readonly shard: RowShard;
}

export class Table<D extends RowDtype = RowDtype> implements RowSource {
  readonly name: string;
  /** [V, D], or the rows of this shard. */
  readonly value: Tensor<D>;
  /** From lookups and sampled losses. */
  readonly rowGradient: RowGradient;
  /** From losses over the whole table. */
  readonly gradient: DenseGradient;
  /** Folder for memory-mapped files of rows and optimiser state; default: in memory. */
  readonly mappedIn: string | undefined;

  /** V. */
  readonly vocabulary: number;
  /** Which of the rows this table has. */
  readonly shard: RowShard;

  /** `value` has all rows, or those of a shard. */
  constructor(device: Device, name: string, value: Tensor<D>, place: Partial<TablePlace> = {}) {
    const { mappedIn, vocabulary = value.rows, shard = WHOLE } = place;
    this.mappedIn = mappedIn;
    this.shard = shard;
    this.name = name;
    this.value = value;
    this.vocabulary = vocabulary;
    this.rowGradient = new RowGradient(device, this);
    this.gradient = new DenseGradient(device, value.shape);
  }

  contribute(contribution: Contribution): void {
    this.rowGradient.add(contribution);
  }

  /** Destination of the next dense gradient: the first overwrites, later ones accumulate. */
  gradTarget(): GradTarget {
    return this.gradient.target();
  }

  /** Discards the gradient. */
  clearGrad(): void {
    this.rowGradient.clear();
    this.gradient.clear();
  }

  dispose(): void {
    this.clearGrad();
    this.value.dispose();
    this.gradient.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
