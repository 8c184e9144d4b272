// One optimiser step over a model: AdamW on dense parameters, the configured optimiser on tables, gradients clipped by their
// global norm. The three table optimisers give different results: dense-adamw.ts, lazy-adam.ts, row-adagrad.ts.

import type { RandomKey, StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { adamw, type AdamHyper } from '../ops/adamw.js';
import { clipScale } from '../ops/clip-scale.js';
import { EXACT_WORDS, squareSum } from '../ops/square-sum.js';
import type { Table } from '../ops/table.js';
import { isF32, type Shape, type Tensor } from '../tensor/tensor.js';
import { DenseAdamW } from './dense-adamw.js';
import { type DenseSlice, wholeSlices } from './dense-slices.js';
import type { DenseGradients, Gradients, TableGradients, Trained } from './gradients.js';
import { LazyAdam } from './lazy-adam.js';
import { RowAdagrad } from './row-adagrad.js';
import { type NamedState, type TableOptimizer, zeros } from './table-optimizer.js';

/** Random purpose of stochastic rounding, beyond the others of a step; each table has its own. */
const ROUNDING = 5 << 20;

const TABLE_OPTIMIZERS = { adamw: DenseAdamW, 'lazy-adam': LazyAdam, 'row-adagrad': RowAdagrad };

export interface OptimizerSettings {
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  /** Decoupled weight decay, on parameters whose spec requests it; never on tables. */
  readonly weightDecay: number;
  readonly table: keyof typeof TABLE_OPTIMIZERS;
  /** Maximum global gradient norm; default: no clipping. */
  readonly clip?: number | undefined;
  /** Seed for stochastic rounding of 16-bit tables. */
  readonly seed?: number;
  /** Stream on which touched table rows are updated (default `compute`). */
  readonly rowStream?: StreamName;
}

/** The part of a model that this rank updates, with several ranks. */
export interface RankShare {
  readonly ranks: number;
  /** Slices of the dense parameters. */
  readonly slices: readonly DenseSlice[];
  /** Sharded tables, of which this rank has only some rows. */
  isDivided(table: Table): boolean;
  /** Whether this rank's rows count towards the norm: of several replicas only one counts. */
  readonly countsRows: boolean;
  /** Gathers `own` of every rank into `all`, in rank order. */
  gather(own: Tensor<'i64'>, all: Tensor<'i64'>): void;
}

/** The moments of a slice of a parameter: `<parameter>.m`, `<parameter>.v`. */
export interface Moment {
  readonly name: string;
  /** Offset of the slice. */
  readonly start: number;
  readonly value: Tensor<'f32'>;
  /** Shape of the whole parameter. */
  readonly shape: Shape;
}

/** Updates a slice of this rank with its gradient. */
export type UpdateSlice = (slice: number, gradient: Tensor<'f32'>, stream?: StreamName) => void;

/** The gradients of this rank's slices of the dense parameters. */
export interface SliceGradients {
  /** All of them, for their norm. Called at most once before `apply`. */
  all(): DenseGradients;
  /** Enqueues the update of each slice, and whatever the other ranks need of it. */
  apply(update: UpdateSlice): void;
}

/** Of a single rank. */
export function localGradients(dense: DenseGradients): SliceGradients {
  return { all: () => dense, apply: update => dense.forEach((gradient, i) => gradient && update(i, gradient)) };
}

/** The gradients to apply. */
export interface GradientsToApply {
  readonly dense: SliceGradients;
  /** Called once: after the dense update, or before it if gradients are clipped by their global norm. */
  tables(): TableGradients;
  /** The remaining rows, summed when they are applied. Absent with clipping, which needs the norm of all rows first. */
  later?: (() => TableGradients) | undefined;
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
  readonly #slices: readonly DenseSlice[];
  /** By slice. */
  readonly #moments: readonly (readonly [m: Moment, v: Moment])[];
  readonly #tables: readonly TableOptimizer[];
  readonly #share: RankShare | undefined;
  /** [1, (1 + n) * EXACT_WORDS] square sums: of replicated gradients, then of each rank's own. */
  readonly #norm: Tensor<'i64'>;
  readonly #sums: { common: Tensor<'i64'>; own: Tensor<'i64'>; all: Tensor<'i64'> | undefined };
  readonly #scale: Tensor<'f32'>;

  constructor(device: Device, settings: OptimizerSettings, trained: Trained, share?: RankShare) {
    this.#device = device;
    this.#share = share;
    this.#settings = settings;
    this.#trained = trained;
    this.#slices = share?.slices ?? wholeSlices(trained.parameters);
    this.#moments = this.#slices.map(slice => [this.#zeros('m', slice), this.#zeros('v', slice)]);
    const TableRule = TABLE_OPTIMIZERS[settings.table];
    this.#tables = trained.tables.map(table => new TableRule(device, table));
    const ranks = share?.ranks ?? 0;
    this.#norm = device.tensor([1, (1 + ranks) * EXACT_WORDS], 'i64');
    const common = this.#norm.columns(0, EXACT_WORDS);
    this.#sums = {
      common,
      own: share ? device.tensor([1, EXACT_WORDS], 'i64') : common,
      all: share && this.#norm.columns(EXACT_WORDS, ranks * EXACT_WORDS),
    };
    this.#scale = device.tensor([1, 1]);
  }

  /** Whether the global norm is computed before the update. */
  get clips(): boolean {
    return this.#settings.clip !== undefined;
  }

  /** Applies the gradients, which the caller still owns. Returns those of tables in the form in which they were applied. */
  apply(given: GradientsToApply, { step, lr, tableLr }: StepRates): TableGradients {
    const { clip, beta1, beta2, eps, weightDecay, rowStream } = this.#settings;
    const dense = clip === undefined ? [] : given.dense.all();
    const clipped = clip === undefined ? undefined : this.#prepare(given.tables());
    const gradScale = clipped && this.#clip({ dense, tables: clipped }, clip!);
    const hyper = (rate: number, decay: number): AdamHyper => ({
      lr: rate,
      beta1,
      beta2,
      eps,
      weightDecay: decay,
      step,
    });
    given.dense.apply((slice, g, stream) => {
      const { parameter, value: p } = this.#slices[slice]!;
      const [m, v] = this.#moments[slice]!;
      const rates = hyper(lr, this.#trained.decays[parameter] ? weightDecay : 0);
      adamw(this.#device, { p, g, m: m.value, v: v.value, hyper: rates, gradScale }, stream);
    });
    const applyTables = (tables: TableGradients): TableGradients => {
      tables.forEach((gradient, i) => {
        const rounding = this.#rounding(i, step);
        if (gradient)
          this.#tables[i]!.apply(gradient, { hyper: hyper(tableLr, 0), gradScale, rounding, stream: rowStream });
      });
      return tables;
    };
    const applied = applyTables(clipped ?? this.#prepare(given.tables()));
    if (given.later) applyTables(given.later());
    return applied;
  }

  #prepare(tables: TableGradients): TableGradients {
    return tables.map((gradient, i) => gradient && this.#tables[i]!.prepare(gradient));
  }

  /** This rank's state of the dense parameters, for checkpoints. */
  moments(): Moment[] {
    return this.#moments.flat();
  }

  /** State of the tables, for checkpoints. */
  tableState(): NamedState[] {
    return this.#tables.flatMap(table => table.state);
  }

  #zeros(suffix: string, { parameter, start, value: { shape } }: DenseSlice): Moment {
    const { name, value: whole } = this.#trained.parameters[parameter]!;
    const { value } = zeros(this.#device, name, shape);
    return { name: `${name}.${suffix}`, start, value, shape: whole.shape };
  }

  #rounding(table: number, step: number): RandomKey | undefined {
    const { seed = 0 } = this.#settings;
    return isF32(this.#trained.tables[table]!.value) ? undefined : { seed, step, purpose: ROUNDING + table };
  }

  /** Factor that limits the global gradient norm to `most`. */
  #clip({ dense, tables }: Gradients, most: number): Tensor<'f32'> {
    const device = this.#device;
    const share = this.#share;
    const { common, own, all } = this.#sums;
    for (const sum of new Set([common, own])) device.upload(sum, new BigInt64Array(EXACT_WORDS));
    for (const grad of dense) {
      if (grad) squareSum(device, grad, { to: own, accumulate: true });
    }
    tables.forEach((gradient, i) => {
      const divided = share?.isDivided(this.#trained.tables[i]!) ?? false;
      if (!gradient || (divided && !share?.countsRows)) return;
      this.#tables[i]!.squareSum(gradient, divided ? own : common);
    });
    if (all) share?.gather(own, all);
    clipScale(this.#device, { squareSum: this.#norm, maxNorm: most, scale: this.#scale });
    return this.#scale;
  }
}
