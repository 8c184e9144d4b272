// An embedding table. Its gradient is not a matrix but contributions, summed row by row later; only losses over the whole
// table (and dense optimisers) fill a dense gradient.
//
// V rows, D width.

import type { GradTarget } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { type RowShard, WHOLE } from '../util/row-shard.js';
import { DenseGradient } from './dense-gradient.js';
import { RowGradient } from './row-gradient.js';
import type { Contribution, RowDtype, RowSource } from './row-source.js';

/** Where a table's rows are. */
export interface TablePlace {
  readonly mappedIn: string | undefined;
  readonly vocabulary: number;
  readonly shard: RowShard;
}

export class Table<D extends RowDtype = RowDtype> implements RowSource {
  readonly name: string;
  /** [V, D], or the rows that are kept here. */
  readonly value: Tensor<D>;
  /** From lookups and sampled losses. */
  readonly rowGradient: RowGradient;
  /** From losses over the whole table. */
  readonly gradient: DenseGradient;
  /** Folder of the files in which its rows lie, and those of its optimiser; in memory when absent. */
  readonly mappedIn: string | undefined;

  /** V. */
  readonly vocabulary: number;
  /** Which of the rows are kept here. */
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

  /** Where the next dense gradient goes: the first one overwrites, later ones add. */
  gradTarget(): GradTarget {
    return this.gradient.target();
  }

  /** Forgets all of the gradient. */
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
