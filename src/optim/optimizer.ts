// One optimiser step over a model: dense parameters by AdamW, tables by the optimiser they were given, gradients clipped
// by their common norm. The three table optimisers are different optimisers, not speeds of one:
//
//   adamw        every row moves every step, also those without a gradient (what the public recipes do)
//   lazy-adam    Adam on the touched rows only, moments of the others stay
//   row-adagrad  one accumulator a row: a third of Adam's memory, for large tables

import type { Device } from '../native/device.js';
import { adamw, type AdamHyper } from '../ops/adamw.js';
import { clipScale } from '../ops/clip-scale.js';
import { embeddingUpdate } from '../ops/embedding-update.js';
import { fillConstant } from '../ops/fill.js';
import type { Parameter } from '../ops/parameter.js';
import { squareSum } from '../ops/square-sum.js';
import type { Table } from '../ops/table.js';
import { isF32, type Tensor } from '../tensor/tensor.js';

export type TableOptimizer = 'adamw' | 'lazy-adam' | 'row-adagrad';

export interface OptimizerSettings {
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  /** Decoupled, on parameters whose spec says so; never on tables. */
  readonly weightDecay: number;
  readonly table: TableOptimizer;
  /** Largest norm of all gradients together; no clipping when absent. */
  readonly clip?: number | undefined;
}

export interface Trained {
  readonly parameters: readonly Parameter[];
  /** For each parameter, whether weights decay. */
  readonly decays: readonly boolean[];
  readonly tables: readonly Table[];
}

export interface StepRates {
  /** Counted from 1, for Adam's bias correction. */
  step: number;
  lr: number;
  tableLr: number;
}

interface Named {
  readonly name: string;
  readonly value: Tensor<'f32'>;
}

export class Optimizer {
  readonly #device: Device;
  readonly #settings: OptimizerSettings;
  readonly #trained: Trained;
  /** Moments and accumulators by name: `<parameter>.m`, `<parameter>.v`, `<table>.sum`. */
  readonly #state = new Map<string, Tensor<'f32'>>();
  /** Row numbers of the tables that a loss touches whole. */
  readonly #rows = new Map<Table, Tensor<'i32'>>();
  readonly #norm: Tensor<'f32'>;
  readonly #scale: Tensor<'f32'>;

  constructor(device: Device, settings: OptimizerSettings, trained: Trained) {
    this.#device = device;
    this.#settings = settings;
    this.#trained = trained;
    const zeros = (name: string, rows: number, cols: number) => {
      const tensor = device.tensor([rows, cols]);
      fillConstant(device, tensor, 0);
      this.#state.set(name, tensor);
    };
    for (const { name, value } of trained.parameters) {
      zeros(`${name}.m`, value.rows, value.cols);
      zeros(`${name}.v`, value.rows, value.cols);
    }
    for (const { name, value } of trained.tables) {
      if (settings.table === 'row-adagrad') zeros(`${name}.sum`, 1, value.rows);
      else {
        zeros(`${name}.m`, value.rows, value.cols);
        zeros(`${name}.v`, value.rows, value.cols);
      }
    }
    this.#norm = device.tensor([1, 1]);
    this.#scale = device.tensor([1, 1]);
  }

  /**
   * Adds contributions into the tables' dense gradients where those are what counts: for dense AdamW, and after a loss
   * over the whole table, which touches every row. May be repeated.
   */
  gather(): void {
    for (const table of this.#trained.tables) {
      if (table.contributions.length === 0 || (this.#settings.table !== 'adamw' && !table.grad)) continue;
      embeddingUpdate(this.#device, table, { kind: 'dense', grad: table.gradTarget() });
      table.clearContributions();
    }
  }

  /** Applies and forgets the gradients. */
  step({ step, lr, tableLr }: StepRates): void {
    const { parameters, decays, tables } = this.#trained;
    const { table: kind, weightDecay } = this.#settings;
    this.gather();
    const scaled = this.#settings.clip === undefined ? {} : { gradScale: this.#clip(this.#settings.clip) };
    const hyper = (rate: number, decay: number): AdamHyper => {
      const { beta1, beta2, eps } = this.#settings;
      return { lr: rate, beta1, beta2, eps, weightDecay: decay, step };
    };
    const dense = (p: Tensor<'f32'>, { name, grad }: Parameter | Table, rates: AdamHyper) => {
      if (grad) adamw(this.#device, { p, g: grad, ...this.#moments(name), hyper: rates, ...scaled });
    };
    parameters.forEach((parameter, i) => {
      dense(parameter.value, parameter, hyper(lr, decays[i] ? weightDecay : 0));
    });
    for (const table of tables) {
      if (kind !== 'adamw') this.#updateRows(table, hyper(tableLr, 0), scaled);
      else if (isF32(table.value)) dense(table.value, table, hyper(tableLr, 0));
      else throw new Error(`table ${table.name} is ${table.value.dtype}: dense AdamW works on f32 rows`);
    }
    for (const owner of [...parameters, ...tables]) owner.clearGrad();
  }

  /** Optimiser state by name, for checkpoints. */
  state(): Named[] {
    return [...this.#state].map(([name, value]) => ({ name, value }));
  }

  #moments(name: string): { m: Tensor<'f32'>; v: Tensor<'f32'> } {
    return { m: this.#state.get(`${name}.m`)!, v: this.#state.get(`${name}.v`)! };
  }

  #updateRows(table: Table, hyper: AdamHyper, scaled: { gradScale?: Tensor<'f32'> }): void {
    if (table.grad)
      table.contribute({ ids: this.#allRows(table), source: table.grad, scale: 1, release: () => undefined });
    if (table.contributions.length === 0) return;
    const { name } = table;
    const { lr, eps, weightDecay } = hyper;
    const update =
      this.#settings.table === 'lazy-adam'
        ? ({ kind: 'lazy-adam', ...this.#moments(name), hyper } as const)
        : ({ kind: 'row-adagrad', state: this.#state.get(`${name}.sum`)!, lr, eps, weightDecay } as const);
    embeddingUpdate(this.#device, table, update, scaled);
  }

  /** [V] 0, 1, 2, ... */
  #allRows(table: Table): Tensor<'i32'> {
    const known = this.#rows.get(table);
    if (known) return known;
    const made = this.#device.from(Int32Array.from({ length: table.value.rows }, (_, row) => row));
    this.#rows.set(table, made);
    return made;
  }

  /** Factor that brings the norm of all gradients to `most` at most. */
  #clip(most: number): Tensor<'f32'> {
    const { parameters, tables } = this.#trained;
    fillConstant(this.#device, this.#norm, 0);
    for (const { grad } of [...parameters, ...tables]) {
      if (grad) squareSum(this.#device, grad, { to: this.#norm, accumulate: true });
    }
    if (this.#settings.table !== 'adamw') {
      for (const table of tables) {
        if (table.contributions.length > 0)
          embeddingUpdate(this.#device, table, { kind: 'square-sum', to: this.#norm });
      }
    }
    clipScale(this.#device, { squareSum: this.#norm, maxNorm: most, scale: this.#scale });
    return this.#scale;
  }
}
