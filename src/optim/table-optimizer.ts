// The interface of table optimisers, and how a gradient in any of its forms is applied.

import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { AdamHyper } from '../ops/adamw.js';
import { embeddingApply, embeddingUpdate, type TableUpdate } from '../ops/embedding-update.js';
import { fillConstant } from '../ops/fill.js';
import type { Table } from '../ops/table.js';
import type { Shape, Tensor } from '../tensor/tensor.js';
import { type RowShard, WHOLE } from '../util/row-shard.js';
import type { TableGradient } from './gradients.js';

/** A tensor of optimiser state, by its name in checkpoints. */
export interface NamedState {
  readonly name: string;
  /** All rows, or those of a shard. */
  readonly value: Tensor<'f32'>;
  /** Shape of the whole tensor. */
  readonly shape: Shape;
  readonly shard: RowShard;
}

export interface TableStep {
  /** Learning rate, betas, weight decay, and the step, counted from 1. */
  readonly hyper: AdamHyper;
  /** A scalar that multiplies the gradient: clipping. */
  readonly gradScale?: Tensor<'f32'> | undefined;
  /** Random numbers for stochastic rounding of 16-bit rows. */
  readonly rounding?: RandomKey | undefined;
  readonly stream?: StreamName | undefined;
}

/** The optimiser of one table, with its state. */
export interface TableOptimizer {
  /** Moments or accumulators, for checkpoints. */
  readonly state: readonly NamedState[];
  /** Converts the gradient to the form that the update needs; the result replaces the argument. */
  prepare(gradient: TableGradient): TableGradient;
  /** to += sum of squares of the gradient. */
  squareSum(gradient: TableGradient, to: Tensor<'i64'>): void;
  apply(gradient: TableGradient, step: TableStep): void;
}

export function zeros(device: Device, name: string, shape: Shape): NamedState {
  const value = device.tensor(shape);
  fillConstant(device, value, 0);
  return { name, value, shape, shard: WHOLE };
}

/** Zeroed optimiser state with `cols` numbers per table row, in the same storage as the table. */
export function tableZeros(device: Device, table: Table, suffix: string, cols: number): NamedState {
  const { vocabulary, shard, mappedIn } = table;
  const [name, own] = [`${table.name}.${suffix}`, [table.value.rows, cols] as const];
  const value = mappedIn === undefined ? zeros(device, name, own).value : device.mappedTensor(own, 'f32', mappedIn);
  return { name, value, shape: [vocabulary, cols], shard };
}

/** Applies a gradient in any of its forms. */
export function updateTable(
  device: Device,
  table: Table,
  gradient: TableGradient,
  update: TableUpdate,
  options: Omit<TableStep, 'hyper'> = {},
): void {
  if (gradient.kind === 'contributions') embeddingUpdate(device, table.value, gradient, update, options);
  else if (gradient.kind === 'rows') embeddingApply(device, table.value, gradient.list, update, options);
  else embeddingApply(device, table.value, { rows: gradient.grad }, update, options);
}

/** to += sum of squares, row by row: those of a sharded table add up to that of the whole. */
export function tableSquareSum(device: Device, table: Table, gradient: TableGradient, to: Tensor<'i64'>): void {
  updateTable(device, table, gradient, { kind: 'square-sum', to });
}
