// One optimiser step over a model: dense parameters by AdamW, tables by the optimiser they were given, gradients clipped
// by their common norm. The three table optimisers are different optimisers, not speeds of one: dense-adamw.ts,
// lazy-adam.ts, row-adagrad.ts.

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

/** What of a model this rank updates, where several do. */
export interface RankShare {
  readonly ranks: number;
  /** Of the dense parameters. */
  readonly slices: readonly DenseSlice[];
  /** Tables of which this rank has some rows only. */
  isDivided(table: Table): boolean;
  /** Whether those rows count in the norm here; a peer has the same ones, and one of them counts. */
  readonly countsRows: boolean;
  /** `all` becomes what every rank has in `own`, one after the other. */
  gather(own: Tensor<'i64'>, all: Tensor<'i64'>): void;
}

/** The moments of a slice of a parameter: `<parameter>.m`, `<parameter>.v`. */
export interface Moment {
  readonly name: string;
  /** Where the slice begins. */
  readonly start: number;
  readonly value: Tensor<'f32'>;
  /** Of the whole parameter. */
  readonly shape: Shape;
}

/** What is to be applied. */
export interface GradientsToApply {
  /** By slice of this rank. */
  readonly dense: DenseGradients;
  /** Asked for once: after the dense update, unless all are clipped by their common norm. */
  tables(): TableGradients;
  /** Called when the update of the dense parameters is enqueued. */
  denseApplied?(): void;
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
  /** [1, (1 + n) * EXACT_WORDS] square sums: of what every rank has, then of each rank's own. */
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

  /** Whether the norm of all gradients is formed before they are applied. */
  get clips(): boolean {
    return this.#settings.clip !== undefined;
  }

  /** Applies the gradients, which stay the caller's. Those of tables come back in the form in which they were applied. */
  apply(given: GradientsToApply, { step, lr, tableLr }: StepRates): TableGradients {
    const { dense } = given;
    const { clip, beta1, beta2, eps, weightDecay, rowStream: stream } = this.#settings;
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
    this.#slices.forEach(({ parameter, value: p }, i) => {
      const g = dense[i];
      if (!g) return;
      const [m, v] = this.#moments[i]!;
      const rates = hyper(lr, this.#trained.decays[parameter] ? weightDecay : 0);
      adamw(this.#device, { p, g, m: m.value, v: v.value, hyper: rates, gradScale });
    });
    given.denseApplied?.();
    const tables = clipped ?? this.#prepare(given.tables());
    tables.forEach((gradient, i) => {
      const rounding = this.#rounding(i, step);
      if (gradient) this.#tables[i]!.apply(gradient, { hyper: hyper(tableLr, 0), gradScale, rounding, stream });
    });
    return tables;
  }

  #prepare(tables: TableGradients): TableGradients {
    return tables.map((gradient, i) => gradient && this.#tables[i]!.prepare(gradient));
  }

  /** Of the dense parameters, as far as this rank has them, for checkpoints. */
  moments(): Moment[] {
    return this.#moments.flat();
  }

  /** Of the tables, for checkpoints. */
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

  /** Factor that brings the norm of all gradients to `most` at most. */
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
