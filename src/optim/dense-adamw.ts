// AdamW on every row in every step, including rows without a gradient, as in the public recipes.

import type { Device } from '../native/device.js';
import { adamw } from '../ops/adamw.js';
import type { Table } from '../ops/table.js';
import { isF32, type Tensor } from '../tensor/tensor.js';
import { disposeOwned, type TableGradient } from './gradients.js';
import { disposeRowList } from '../ops/row-list.js';
import {
  type NamedState,
  type TableOptimizer,
  type TableStep,
  tableSquareSum,
  tableZeros,
  updateTable,
} from './table-optimizer.js';

export class DenseAdamW implements TableOptimizer {
  readonly state: readonly [m: NamedState, v: NamedState];
  readonly #device: Device;
  readonly #table: Table;
  readonly #value: Tensor<'f32'>;

  constructor(device: Device, table: Table) {
    if (!isF32(table.value)) {
      throw new Error(`table ${table.name} is ${table.value.dtype}: dense AdamW works on f32 rows`);
    }
    this.#device = device;
    this.#table = table;
    this.#value = table.value;
    const { cols } = table.value;
    this.state = [tableZeros(device, table, 'm', cols), tableZeros(device, table, 'v', cols)];
  }

  /** A gradient of all rows. */
  prepare(gradient: TableGradient): TableGradient {
    if (gradient.kind === 'dense') return gradient;
    const grad = this.#table.gradient.target();
    updateTable(this.#device, this.#table, gradient, { kind: 'dense', grad });
    if (gradient.kind === 'rows') disposeRowList(gradient.list);
    if (gradient.kind === 'contributions') disposeOwned(gradient);
    return { kind: 'dense', grad: this.#table.gradient.take()! };
  }

  squareSum(gradient: TableGradient, to: Tensor<'i64'>): void {
    tableSquareSum(this.#device, this.#table, gradient, to);
  }

  apply(gradient: TableGradient, { hyper, gradScale }: TableStep): void {
    const [m, v] = this.state;
    adamw(this.#device, { p: this.#value, g: dense(gradient), m: m.value, v: v.value, hyper, gradScale });
  }
}

function dense(gradient: TableGradient): Tensor<'f32'> {
  if (gradient.kind === 'dense') return gradient.grad;
  throw new Error('dense AdamW was given a gradient that it has not prepared');
}
