// Adam on rows that have a gradient; the moments of other rows are unchanged.

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

export class LazyAdam implements TableOptimizer {
  readonly state: readonly [m: NamedState, v: NamedState];
  readonly #device: Device;
  readonly #table: Table;

  constructor(device: Device, table: Table) {
    this.#device = device;
    this.#table = table;
    const { cols } = table.value;
    this.state = [tableZeros(device, table, 'm', cols), tableZeros(device, table, 'v', cols)];
  }

  prepare(gradient: TableGradient): TableGradient {
    return gradient;
  }

  squareSum(gradient: TableGradient, to: Tensor<'i64'>): void {
    tableSquareSum(this.#device, this.#table, gradient, to);
  }

  apply(gradient: TableGradient, { hyper, ...options }: TableStep): void {
    const [m, v] = this.state;
    const update = { kind: 'lazy-adam', m: m.value, v: v.value, hyper } as const;
    updateTable(this.#device, this.#table, gradient, update, options);
  }
}
