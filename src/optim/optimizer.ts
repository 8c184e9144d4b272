// One optimiser step over a model: dense parameters by AdamW, tables by the optimiser they were given, gradients clipped
// by their common norm. The three table optimisers are different optimisers, not speeds of one: dense-adamw.ts,
// lazy-adam.ts, row-adagrad.ts.

import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { adamw, type AdamHyper } from '../ops/adamw.js';
import { clipScale } from '../ops/clip-scale.js';
import { EXACT_WORDS, squareSum } from '../ops/square-sum.js';
import type { Table } from '../ops/table.js';
import { isF32, type Tensor } from '../tensor/tensor.js';
import { DenseAdamW } from './dense-adamw.js';
import type { Gradients, Trained } from './gradients.js';
import { LazyAdam } from './lazy-adam.js';
import { RowAdagrad } from './row-adagrad.js';
import { type NamedState, type TableOptimizer, zeros } from './table-optimizer.js';

/** Purpose of those numbers, far from the others of a step; each table has its own. */
const ROUNDING = 5 << 20;

const TABLE_OPTIMIZERS = { adamw: DenseAdamW, 'lazy-adam': LazyAdam, 'row-adagrad': RowAdagrad };

export interface OptimizerSettings {
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  /** Decoupled, on parameters whose spec says so; never on tables. */
  readonly weightDecay: number;
  readonly table: keyof typeof TABLE_OPTIMIZERS;
  /** Largest norm of all gradients together; no clipping when absent. */
  readonly clip?: number | undefined;
  /** Of the random numbers that round tables stored in 16 bits. */
  readonly seed?: number;
  /** Where touched rows of tables are updated (default `compute`). */
  readonly rowStream?: StreamName;
}

/** Tables of which this rank has some rows only. */
export interface DividedTables {
  /** Ranks over which the rows are divided. */
  readonly owners: number;
  has(table: Table): boolean;
  /** `all` becomes what every owner has in `own`, one after the other. */
  gather(own: Tensor<'i64'>, all: Tensor<'i64'>): void;
}

export interface StepRates {
  /** Counted from 1, for Adam's bias correction. */
  step: number;
  lr: number;
  tableLr: number;
}

export class Optimizer {
  readonly #device: Device;
  readonly #settings: OptimizerSettings;
  readonly #trained: Trained;
  /** Of the parameters, in their order: `<parameter>.m`, `<parameter>.v`. */
  readonly #moments: readonly (readonly [m: NamedState, v: NamedState])[];
  readonly #tables: readonly TableOptimizer[];
  readonly #divided: DividedTables | undefined;
  /** [1, (1 + n) * EXACT_WORDS] square sums: of what every rank has, then of each owner's rows. */
  readonly #norm: Tensor<'i64'>;
  readonly #sums: { common: Tensor<'i64'>; own: Tensor<'i64'>; all: Tensor<'i64'> | undefined };
  readonly #scale: Tensor<'f32'>;

  constructor(device: Device, settings: OptimizerSettings, trained: Trained, divided?: DividedTables) {
    this.#device = device;
    this.#divided = divided;
    this.#settings = settings;
    this.#trained = trained;
    this.#moments = trained.parameters.map(({ name, value: { shape } }) => [
      zeros(device, `${name}.m`, shape),
      zeros(device, `${name}.v`, shape),
    ]);
    const TableRule = TABLE_OPTIMIZERS[settings.table];
    this.#tables = trained.tables.map(table => new TableRule(device, table));
    const owners = divided?.owners ?? 0;
    this.#norm = device.tensor([1, (1 + owners) * EXACT_WORDS], 'i64');
    this.#sums = {
      common: this.#norm.columns(0, EXACT_WORDS),
      own: device.tensor([1, EXACT_WORDS], 'i64'),
      all: divided && this.#norm.columns(EXACT_WORDS, owners * EXACT_WORDS),
    };
    this.#scale = device.tensor([1, 1]);
  }

  /** Applies the gradients, which stay the caller's: the ones returned, in the form in which they were applied. */
  apply(given: Gradients, { step, lr, tableLr }: StepRates): Gradients {
    const tables = given.tables.map((gradient, i) => gradient && this.#tables[i]!.prepare(gradient));
    const gradients = { dense: given.dense, tables };
    const { clip, beta1, beta2, eps, weightDecay, rowStream: stream } = this.#settings;
    const gradScale = clip === undefined ? undefined : this.#clip(gradients, clip);
    const hyper = (rate: number, decay: number): AdamHyper => ({
      lr: rate,
      beta1,
      beta2,
      eps,
      weightDecay: decay,
      step,
    });
    this.#trained.parameters.forEach(({ value: p }, i) => {
      const g = gradients.dense[i];
      if (!g) return;
      const [m, v] = this.#moments[i]!;
      const rates = hyper(lr, this.#trained.decays[i] ? weightDecay : 0);
      adamw(this.#device, { p, g, m: m.value, v: v.value, hyper: rates, gradScale });
    });
    tables.forEach((gradient, i) => {
      const rounding = this.#rounding(i, step);
      if (gradient) this.#tables[i]!.apply(gradient, { hyper: hyper(tableLr, 0), gradScale, rounding, stream });
    });
    return gradients;
  }

  /** Optimiser state by name, for checkpoints. */
  state(): NamedState[] {
    return [...this.#moments.flat(), ...this.#tables.flatMap(table => table.state)];
  }

  #rounding(table: number, step: number): RandomKey | undefined {
    const { seed = 0 } = this.#settings;
    return isF32(this.#trained.tables[table]!.value) ? undefined : { seed, step, purpose: ROUNDING + table };
  }

  /** Factor that brings the norm of all gradients to `most` at most. */
  #clip({ dense, tables }: Gradients, most: number): Tensor<'f32'> {
    const device = this.#device;
    const divided = this.#divided;
    const { common, own, all } = this.#sums;
    for (const sum of [common, own]) device.upload(sum, new BigInt64Array(EXACT_WORDS));
    for (const grad of dense) {
      if (grad) squareSum(device, grad, { to: common, accumulate: true });
    }
    tables.forEach((gradient, i) => {
      const table = this.#trained.tables[i]!;
      if (gradient) this.#tables[i]!.squareSum(gradient, divided?.has(table) ? own : common);
    });
    if (all) divided?.gather(own, all);
    clipScale(this.#device, { squareSum: this.#norm, maxNorm: most, scale: this.#scale });
    return this.#scale;
  }
}
