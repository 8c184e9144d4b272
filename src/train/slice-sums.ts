// Dense parameters with optimiser state sharded over the ranks (ZeRO-1): gradients of a slice go to its owner, which sums
// and applies them and then sends the updated parameters. Moves as many bytes as an all-reduce. Slice by slice, the last
// parameters first, as backward finishes them: all but the first parameters are up to date when it ends.

import type { Communicator } from '../dist/comm/communicator.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Parameter } from '../ops/parameter.js';
import type { Portion } from '../optim/dense-slices.js';
import type { DenseGradients } from '../optim/gradients.js';
import type { SliceGradients } from '../optim/optimizer.js';
import type { Tensor } from '../tensor/tensor.js';
import type { DenseSum } from './dense-sum.js';
import type { RankNode } from './rank-nodes.js';

export interface SliceRanks {
  device: Device;
  world: Communicator;
  dense: DenseSum;
  /** On which slices are summed and updated. `comm`: while backward still runs. */
  stream: StreamName;
}

type SliceSum = ReturnType<DenseSum['reduce']>;

export class SliceSums {
  readonly #ranks: SliceRanks;
  readonly #parameters: readonly Parameter[];
  readonly #portions: readonly Portion[];
  /** Portions of tensors that persist across steps: parameters and their gradient buffers. */
  readonly #views = new WeakMap<Tensor<'f32'>, Map<number, Tensor<'f32'>>>();
  /** By portion: the index of this rank's slice. */
  readonly #slices: readonly (number | undefined)[];

  constructor(ranks: SliceRanks, parameters: readonly Parameter[], portions: readonly Portion[]) {
    this.#ranks = ranks;
    this.#parameters = parameters;
    this.#portions = portions;
    let slices = 0;
    this.#slices = portions.map(({ counts }) => (counts[ranks.world.rank]! > 0 ? slices++ : undefined));
  }

  /** The sums of this rank's slices. Consumes the gradients of the nodes. */
  total(lanes: number, nodes: readonly RankNode[]): SliceGradients {
    /** By portion, once they were asked for. */
    let sums: (SliceSum | undefined)[] | undefined;
    const inTurn = (each: (k: number) => void): void => {
      for (let k = this.#portions.length - 1; k >= 0; k--) each(k);
    };
    return {
      all: (): DenseGradients => {
        const found: (SliceSum | undefined)[] = [];
        inTurn(k => (found[k] = this.#sum(lanes, nodes, this.#portions[k]!)));
        sums = found;
        return this.#portions.flatMap((_, k) => (this.#slices[k] === undefined ? [] : [found[k]?.sum]));
      },
      apply: update => {
        inTurn(k => {
          const portion = this.#portions[k]!;
          const found = sums ? sums[k] : this.#sum(lanes, nodes, portion);
          if (!found) return;
          if (found.sum) update(this.#slices[k]!, found.sum, this.#ranks.stream);
          this.#share(portion);
          for (const tensor of found.owned) tensor.dispose();
        });
        for (const { own } of nodes) {
          own?.dense.forEach((grad, i) => grad && this.#parameters[i]!.gradient.giveBack(grad));
        }
      },
    };
  }

  /** Undefined when no rank has a gradient of the parameter. */
  #sum(lanes: number, nodes: readonly RankNode[], portion: Portion): SliceSum | undefined {
    const parts = nodes
      .filter(({ note }) => note.dense[portion.parameter])
      .map(node => ({ ...node, own: this.#portion(node.own?.dense[portion.parameter], portion) }));
    if (parts.length === 0) return undefined;
    const { dense, stream } = this.#ranks;
    return dense.reduce(lanes, parts, portion.counts, stream);
  }

  /** Sends the updated slices of a portion to all ranks. */
  #share(portion: Portion): void {
    const { device, world, dense } = this.#ranks;
    const receive = this.#portion(this.#parameters[portion.parameter]!.value, portion)!;
    world.allGatherV(device, { receive, counts: dense.countsOf(portion.counts), unit: 1 });
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
