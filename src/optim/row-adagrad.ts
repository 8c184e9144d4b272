// AdaGrad with one accumulator per row, on the rows that have a gradient: a third of Adam's memory, for large tables.

import type { Device } from '../native/device.js';
import type { Table } from '../ops/table.js';
import type { Tensor } from '../tensor/tensor.js';
import type { TableGradient } from './gradients.js';
import {
  type NamedState,
  type TableOptimizer,
  type TableStep,
  tableSquareSum,
  tableZeros,
  updateTable,
} from './table-optimizer.js';

export class RowAdagrad implements TableOptimizer {
  readonly state: readonly [sum: NamedState];
  readonly #device: Device;
  readonly #table: Table;

  constructor(device: Device, table: Table) {
    this.#device = device;
    this.#table = table;
    this.state = [tableZeros(device, table, 'sum', 1)];
  }

  prepare(gradient: TableGradient): TableGradient {
    return gradient;
  }

  squareSum(gradient: TableGradient, to: Tensor<'i64'>): void {
    tableSquareSum(this.#device, this.#table, gradient, to);
  }

  apply(gradient: TableGradient, { hyper: { lr, eps, weightDecay }, ...options }: TableStep): void {
    const [{ value: state }] = this.state;
    updateTable(this.#device, this.#table, gradient, { kind: 'row-adagrad', state, lr, eps, weightDecay }, options);
  }
}
