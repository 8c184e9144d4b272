// The gradients of this rank's lanes, summed in the order of the lane tree. Each dense parameter has its own sum. The last
// parameters come first: backward finishes them first, so they can be sent while it still runs. Table rows come after
// them: the gradients of input rows are known only when backward is done.

import type { StreamName } from '../native/call.js';
import type { Gradients, GradientSums, TableGradients, TakeOptions, Trained } from '../optim/gradients.js';
import type { Tensor } from '../tensor/tensor.js';
import { LaneSum, type Partial } from './lane-tree.js';

export class LaneGradients {
  readonly #sums: GradientSums;
  readonly #dense: readonly LaneSum<Tensor<'f32'>>[];
  readonly #tables: LaneSum<TableGradients>;
  #stream: StreamName = 'compute';

  constructor(lanes: number, sums: GradientSums, { parameters }: Trained) {
    this.#sums = sums;
    this.#dense = parameters.map(
      (_, i) => new LaneSum<Tensor<'f32'>>(lanes, (left, right) => sums.addDense(i, left, right, this.#stream)),
    );
    this.#tables = new LaneSum(lanes, (left, right) => sums.addTables(left, right, this.#stream));
  }

  /** Takes the gradients that the next lane left in parameters and tables. */
  take(options: TakeOptions): void {
    const { lane } = options;
    const range = { from: lane, to: lane + 1 };
    this.#stream = options.stream ?? 'compute';
    this.#putDense({ ...range, value: this.#sums.takeDense() });
    this.#tables.putNode({ ...range, value: this.#sums.takeTables(options) });
  }

  /** Skips the next lane, which is empty. */
  skip(lane: number): void {
    this.putNode({ from: lane, to: lane + 1, value: undefined });
  }

  putNode({ from, to, value }: Partial<Gradients>): void {
    this.#putDense({ from, to, value: value?.dense });
    this.#tables.putNode({ from, to, value: value?.tables });
  }

  /** The first lane whose contributions have not been summed yet: tensors of lanes before it are no longer needed. */
  get firstDeferred(): number {
    const waits = ({ value }: Partial<TableGradients>): boolean =>
      value?.some(gradient => gradient?.kind === 'contributions') ?? false;
    return this.#tables.partials.find(waits)?.from ?? Number.POSITIVE_INFINITY;
  }

  /** The partial sums so far: whole nodes of the tree, in order. */
  get partials(): Partial<Gradients>[] {
    return this.#tables.partials.map(({ from, to, value: tables }, k) => {
      const dense = this.#dense.map(sum => sum.partials[k]!.value);
      return { from, to, value: tables && { dense, tables } };
    });
  }

  /** The sum of all lanes; absent when all were empty. */
  total(): Gradients | undefined {
    const tables = this.#tables.total();
    return tables && { dense: this.#dense.map(sum => sum.total()), tables };
  }

  #putDense({ from, to, value }: Partial<Gradients['dense']>): void {
    for (let i = this.#dense.length - 1; i >= 0; i--) this.#dense[i]!.putNode({ from, to, value: value?.[i] });
  }
}
