// Dense parameters with optimiser state sharded over the ranks (ZeRO-1): gradients of a slice go to its owner, which sums
// and applies them and then sends the updated parameters. Moves as many bytes as an all-reduce.

import type { Communicator } from '../dist/comm/communicator.js';
import type { Device } from '../native/device.js';
import type { Parameter } from '../ops/parameter.js';
import type { Portion } from '../optim/dense-slices.js';
import type { DenseGradients } from '../optim/gradients.js';
import type { Tensor } from '../tensor/tensor.js';
import type { DenseSum } from './dense-sum.js';
import type { RankNode } from './rank-nodes.js';

export interface SliceRanks {
  device: Device;
  world: Communicator;
  dense: DenseSum;
}

export class SliceSums {
  readonly #ranks: SliceRanks;
  readonly #parameters: readonly Parameter[];
  readonly #portions: readonly Portion[];
  /** Portions of tensors that persist across steps: parameters and their gradient buffers. */
  readonly #views = new WeakMap<Tensor<'f32'>, Map<number, Tensor<'f32'>>>();
  /** Sums in progress. */
  #owned: Tensor[] = [];
  /** By parameter, whether any rank had a gradient in this step. */
  #given: readonly boolean[] = [];

  constructor(ranks: SliceRanks, parameters: readonly Parameter[], portions: readonly Portion[]) {
    this.#ranks = ranks;
    this.#parameters = parameters;
    this.#portions = portions;
  }

  /** The sums of this rank's slices, in the order of the portions. Valid until they are shared. */
  total(lanes: number, nodes: readonly RankNode[]): DenseGradients {
    const { world, dense } = this.#ranks;
    const sums: (Tensor<'f32'> | undefined)[] = [];
    this.#given = this.#parameters.map((_, i) => nodes.some(({ note }) => note.dense[i]));
    // The last parameters come first: their gradients are final first.
    for (let k = this.#portions.length - 1; k >= 0; k--) {
      const portion = this.#portions[k]!;
      if (!this.#given[portion.parameter]) continue;
      const parts = nodes
        .filter(({ note }) => note.dense[portion.parameter])
        .map(node => ({ ...node, own: this.#portion(node.own?.dense[portion.parameter], portion) }));
      const { sum, owned } = dense.reduce(lanes, parts, portion.counts);
      sums[k] = sum;
      this.#owned.push(...owned);
    }
    for (const { own } of nodes) {
      own?.dense.forEach((grad, i) => grad && this.#parameters[i]!.gradient.giveBack(grad));
    }
    return this.#portions.flatMap(({ counts }, k) => (counts[world.rank]! > 0 ? [sums[k]] : []));
  }

  /** Sends the updated slices to all ranks, first parameters first, as forward needs them. */
  share(): void {
    const { device, world, dense } = this.#ranks;
    for (const portion of this.#portions) {
      if (!this.#given[portion.parameter]) continue;
      const receive = this.#portion(this.#parameters[portion.parameter]!.value, portion)!;
      world.allGatherV(device, { receive, counts: dense.countsOf(portion.counts), unit: 1 });
    }
    for (const tensor of this.#owned) tensor.dispose();
    this.#owned = [];
  }

  #portion(tensor: Tensor<'f32'> | undefined, { start, counts }: Portion): Tensor<'f32'> | undefined {
    const elements = counts.reduce((sum, count) => sum + count, 0);
    if (!tensor || elements === tensor.size) return tensor;
    const known = this.#views.get(tensor) ?? new Map<number, Tensor<'f32'>>();
    this.#views.set(tensor, known);
    const view = known.get(start) ?? tensor.range(start, elements);
    known.set(start, view);
    return view;
  }
}
