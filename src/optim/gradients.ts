// The gradients of one lane, or summed over several: dense ones by parameter, those of tables in one of three forms. They are
// taken from parameters and tables, and their memory is returned when the gradients are released.
//
// V rows of a table, D width.

import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { add } from '../ops/elementwise.js';
import { embeddingReduce, isSmallTable, MOST_CONTRIBUTIONS } from '../ops/embedding-reduce.js';
import { embeddingApply, embeddingUpdate } from '../ops/embedding-update.js';
import type { Parameter } from '../ops/parameter.js';
import type { RowGradient } from '../ops/row-gradient.js';
import { disposeRowList, type RowList, sparseAdd } from '../ops/row-list.js';
import type { Contribution, RowSource } from '../ops/row-source.js';
import type { Table } from '../ops/table.js';
import type { Tensor } from '../tensor/tensor.js';

export type TableGradient =
  /** Not yet summed; valid as long as the tensors of their lanes, unless it owns them. */
  | {
      readonly kind: 'contributions';
      readonly source: RowSource;
      readonly contributions: readonly Contribution[];
      readonly owned?: readonly Tensor[];
    }
  /** Touched rows. */
  | { readonly kind: 'rows'; readonly list: RowList }
  /** All rows, [V, D]. */
  | { readonly kind: 'dense'; readonly grad: Tensor<'f32'> };

export type DenseGradients = readonly (Tensor<'f32'> | undefined)[];
export type TableGradients = readonly (TableGradient | undefined)[];

export interface Gradients {
  /** By parameter or slice; undefined without a gradient. */
  readonly dense: DenseGradients;
  /** By table. */
  readonly tables: TableGradients;
}

/** A row source that has accumulated a gradient: a table, or rows staged from it. */
export interface GradedRows extends RowSource {
  readonly rowGradient: RowGradient;
}

export interface Trained {
  readonly parameters: readonly Parameter[];
  /** For each parameter, whether weight decay applies. */
  readonly decays: readonly boolean[];
  readonly tables: readonly Table[];
}

export interface TakeOptions {
  /** The sources that a lane read instead of the tables, by table. */
  staged?: ReadonlyMap<Table, GradedRows>;
  lane: number;
  /** Whether contributions may stay unsummed until other lanes or the update are ready; a list outlives its lane. */
  defer: DeferRule;
  stream?: StreamName;
}

export type DeferRule = (source: RowSource, contributions: readonly Contribution[]) => boolean;

/**
 * For several lanes that read the same table: contributions are summed in one call, without a list per lane. Not used where
 * a list would be smaller.
 */
export const deferIfSmaller: DeferRule = (source, contributions) => {
  if (source.ids || isSmallTable(source.vocabulary, source.value.cols)) return false;
  const entries = contributions.reduce((sum, { ids }) => sum + ids.size, 0);
  const tensors = new Set(contributions.flatMap(({ ids, coef, source: rows }) => [ids, coef, rows]));
  const kept = [...tensors].reduce((sum, tensor) => sum + (tensor?.size ?? 0), 0);
  return kept <= Math.min(entries, source.vocabulary) * (source.value.cols + 1);
};

export class GradientSums {
  readonly #device: Device;
  readonly #trained: Trained;

  constructor(device: Device, trained: Trained) {
    this.#device = device;
    this.#trained = trained;
  }

  /** Takes the gradients that a lane's ops left in parameters and tables. */
  take(options: TakeOptions): Gradients {
    return { dense: this.takeDense(), tables: this.takeTables(options) };
  }

  takeDense(): DenseGradients {
    return this.#trained.parameters.map(({ gradient }) => gradient.take());
  }

  takeTables(options: TakeOptions): TableGradients {
    return this.#trained.tables.map(table => this.#takeTable(table, options));
  }

  /** left + right of one parameter. Consumes both. */
  addDense(parameter: number, left: Tensor<'f32'>, right: Tensor<'f32'>, stream?: StreamName): Tensor<'f32'> {
    add(this.#device, 1, { x: right, y: left }, stream);
    this.#trained.parameters[parameter]!.gradient.giveBack(right);
    return left;
  }

  /** left + right; an absent one is skipped. Consumes both. */
  addTables(left: TableGradients, right: TableGradients, stream?: StreamName): TableGradients {
    return this.#trained.tables.map((table, i) => {
      const [y, x] = [left[i], right[i]];
      return x && y ? this.addTable(table, y, x, stream) : (y ?? x);
    });
  }

  /** Returns the memory to parameters and tables. */
  release({ dense, tables }: Gradients): void {
    dense.forEach((grad, i) => grad && this.#trained.parameters[i]!.gradient.giveBack(grad));
    tables.forEach((gradient, i) => {
      if (gradient?.kind === 'rows') disposeRowList(gradient.list);
      if (gradient?.kind === 'contributions') disposeOwned(gradient);
      if (gradient?.kind === 'dense') this.#trained.tables[i]!.gradient.giveBack(gradient.grad);
    });
  }

  #takeTable(table: Table, { staged, lane, defer, stream }: TakeOptions): TableGradient | undefined {
    const source: GradedRows = staged?.get(table) ?? table;
    const { rowGradient } = source;
    const { contributions } = rowGradient;
    if (table.gradient.value) {
      // A loss over the whole table touches every row; the touched rows of the input are added to it.
      if (!rowGradient.isEmpty) this.#addDense(table, source, stream);
      return { kind: 'dense', grad: table.gradient.take()! };
    }
    if (rowGradient.isEmpty) return undefined;
    if (contributions && defer(source, contributions)) {
      const ofLane = contributions.map(contribution => ({ ...contribution, lane }));
      rowGradient.clear();
      return { kind: 'contributions', source, contributions: ofLane };
    }
    return { kind: 'rows', list: rowGradient.takeList(stream) };
  }

  #addDense(table: Table, source: GradedRows, stream: StreamName | undefined): void {
    const { contributions } = source.rowGradient;
    const update = { kind: 'dense', grad: table.gradient.target() } as const;
    if (contributions) {
      embeddingUpdate(this.#device, table.value, { source, contributions }, update, { stream });
      source.rowGradient.clear();
    } else {
      const list = source.rowGradient.takeList(stream);
      embeddingApply(this.#device, table.value, list, update, { stream });
      disposeRowList(list);
    }
  }

  /** left + right of one table. Consumes both. */
  addTable(table: Table, left: TableGradient, right: TableGradient, stream?: StreamName): TableGradient {
    if (left.kind === 'dense' && right.kind === 'dense') {
      add(this.#device, 1, { x: right.grad, y: left.grad }, stream);
      table.gradient.giveBack(right.grad);
      return left;
    }
    if (left.kind === 'contributions' && right.kind === 'contributions' && left.source === right.source) {
      const contributions = [...left.contributions, ...right.contributions];
      const owned = [...(left.owned ?? []), ...(right.owned ?? [])];
      if (contributions.length <= MOST_CONTRIBUTIONS) return { ...left, contributions, owned };
    }
    const lists = { left: this.#list(table, left, stream), right: this.#list(table, right, stream) };
    const list = sparseAdd(this.#device, { ...lists, vocabulary: table.vocabulary }, stream);
    disposeRowList(lists.left);
    disposeRowList(lists.right);
    return { kind: 'rows', list };
  }

  #list(table: Table, gradient: TableGradient, stream?: StreamName): RowList {
    if (gradient.kind === 'rows') return gradient.list;
    if (gradient.kind === 'dense') throw new Error(`table ${table.name}: some lanes have a gradient of all rows`);
    const list = embeddingReduce(this.#device, gradient.source, gradient.contributions, stream);
    disposeOwned(gradient);
    return list;
  }
}

/** Disposes the tensors that came from other ranks. */
export function disposeOwned({ owned = [] }: { owned?: readonly Tensor[] }): void {
  for (const tensor of owned) tensor.dispose();
}
