// Sums a sharded table's gradient from its factors: ids, coefficients and user vectors of every lane are sent to all ranks,
// and each sums the rows that it owns. The lists of gradient rows, which are as large as the rows that a lane reads, are
// never formed. Rows are summed as one rank would sum the contributions of all lanes, so with the same bits.
//
// T tokens of a lane, R negatives per token, D width: a lane sends 2 T D + 2 T R numbers.

import type { Communicator } from '../dist/comm/communicator.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { localIds } from '../ops/route-ids.js';
import type { Contribution } from '../ops/row-source.js';
import type { Table } from '../ops/table.js';
import type { GradientSums, TableGradient } from '../optim/gradients.js';
import type { Shape, Tensor } from '../tensor/tensor.js';
import { LaneSum, putNodes } from './lane-tree.js';
import type { RankPart } from './rank-nodes.js';

/** Describes contributions by the tensors that they consist of, so that other ranks can receive them. */
export interface FactorsNote {
  readonly ids: readonly Shape[];
  readonly floats: readonly Shape[];
  readonly contributions: readonly (Omit<Contribution, 'ids' | 'source' | 'coef'> & {
    /** Indices of tensors; coefficients may be some columns of one. */
    readonly ids: number;
    readonly source: number;
    readonly coef?: { readonly of: number; readonly from: number; readonly cols: number };
  })[];
}

/** The contributions of one node of the lane tree; present if it is this rank's. */
export interface FactorsPart extends RankPart<readonly Contribution[]> {
  readonly note: FactorsNote;
}

interface Sum {
  lanes: number;
  parts: readonly FactorsPart[];
  /** Its contributions have ids of the whole table. */
  table: Table;
  stream: StreamName;
}

interface Factors {
  readonly ids: readonly Tensor<'i32'>[];
  readonly floats: readonly Tensor<'f32'>[];
}

/** The tensors of contributions, each once, and as a whole if only some columns are read. */
function factorsOf(contributions: readonly Contribution[]): Factors {
  const floats = contributions.flatMap(({ source, coef }) => [source, ...(coef ? [coef.root] : [])]);
  return { ids: [...new Set(contributions.map(({ ids }) => ids))], floats: [...new Set(floats)] };
}

export function noteFactors(contributions: readonly Contribution[]): FactorsNote {
  const factors = factorsOf(contributions);
  return {
    ids: factors.ids.map(({ shape }) => shape),
    floats: factors.floats.map(({ shape }) => shape),
    contributions: contributions.map(({ ids, source, coef, ...rest }) => ({
      ...rest,
      ids: factors.ids.indexOf(ids),
      source: factors.floats.indexOf(source),
      ...(coef && { coef: { of: factors.floats.indexOf(coef.root), from: coef.from, cols: coef.cols } }),
    })),
  };
}

export class FactorSum {
  readonly #device: Device;
  readonly #world: Communicator;
  readonly #sums: GradientSums;

  constructor(device: Device, world: Communicator, sums: GradientSums) {
    this.#device = device;
    this.#world = world;
    this.#sums = sums;
  }

  /** The gradient of this rank's rows. Collective. */
  total({ lanes, parts, table, stream }: Sum): TableGradient {
    const sum = new LaneSum<TableGradient>(lanes, (left, right) => this.#sums.addTable(table, left, right, stream));
    const nodes = parts.map(part => ({ ...part, value: this.#receive(part, table, stream) }));
    putNodes(sum, { from: 0, to: lanes }, nodes);
    return sum.total()!;
  }

  /** The contributions of a node, with ids of this rank's rows. */
  #receive({ rank, own, note }: FactorsPart, table: Table, stream: StreamName): TableGradient {
    const device = this.#device;
    const { ids, floats } = own
      ? factorsOf(own)
      : {
          ids: note.ids.map(shape => device.tensor(shape, 'i32')),
          floats: note.floats.map(shape => device.tensor(shape)),
        };
    for (const tensor of [...ids, ...floats]) this.#world.broadcast(device, tensor, rank);
    const local = ids.map(all => localIds(device, all, table.shard, stream));
    const contributions = note.contributions.map(({ ids: at, source, coef, ...rest }) => ({
      ...rest,
      ids: local[at]!,
      source: floats[source]!,
      ...(coef && { coef: columns(floats[coef.of]!, coef) }),
    }));
    if (!own) for (const all of ids) all.dispose();
    return { kind: 'contributions', source: table, contributions, owned: own ? local : [...local, ...floats] };
  }
}

function columns(of: Tensor<'f32'>, { from, cols }: { from: number; cols: number }): Tensor<'f32'> {
  return cols === of.cols ? of : of.columns(from, cols);
}
