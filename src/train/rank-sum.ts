// The sum of a step's gradients over all ranks. Each rank brings whole nodes of the lane tree; whoever adds them up does it
// in the tree's order, so the bits are those of one rank that computed all lanes. Dense gradients: dense-sum.ts; rows of
// tables: row-sum.ts. All of it is enqueued: an exchange waits for the tensors it moves and for nothing else, so gradients
// that are final leave while backward still runs.

import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Table } from '../ops/table.js';
import type { Gradients, TableGradient, Trained } from '../optim/gradients.js';
import type { Tensor } from '../tensor/tensor.js';
import { DenseSum } from './dense-sum.js';
import type { Partial } from './lane-tree.js';
import { gatherNodes, type RankNode, type Wishes } from './rank-nodes.js';
import { type ListPart, RowSum } from './row-sum.js';
import { STAGES } from './stages.js';

export interface RankSumOptions {
  device: Device;
  trained: Trained;
  groups: RankGroups;
  /** Of which this rank has some rows only. */
  isDivided: (table: Table) => boolean;
  /** Where rows are added. */
  stream: StreamName;
}

export class RankSum {
  readonly #options: RankSumOptions;
  readonly #dense: DenseSum;
  readonly #rows: RowSum;

  constructor(options: RankSumOptions) {
    const { device, groups, stream } = options;
    this.#options = options;
    this.#dense = new DenseSum(device, groups.world);
    this.#rows = new RowSum(device, groups, stream);
  }

  /** Uses the partial sums up. Collective: every rank calls it for every step, with or without work. */
  async total(
    lanes: number,
    partials: readonly Partial<Gradients>[],
    wishes: Wishes,
  ): Promise<Wishes & { gradients: Gradients | undefined }> {
    const { nodes, ...agreed } = await gatherNodes(this.#options.groups.world, partials, wishes);
    return { ...agreed, gradients: nodes.length === 0 ? undefined : this.#sum(lanes, nodes) };
  }

  #sum(lanes: number, nodes: readonly RankNode[]): Gradients {
    const { parameters, tables } = this.#options.trained;
    const dense: (Tensor<'f32'> | undefined)[] = parameters.map(() => undefined);
    // The last parameters come first: their gradients are final first.
    for (let i = parameters.length - 1; i >= 0; i--) {
      const parts = nodes.filter(({ note }) => note.dense[i]).map(node => ({ ...node, own: node.own?.dense[i] }));
      dense[i] = this.#dense.total(lanes, parts, parameters[i]!.gradient);
    }
    this.#options.device.tag(-1, STAGES.indexOf('reduce')); // to tell rows from dense gradients in the spans
    return { dense, tables: tables.map((table, i) => this.#sumTable(lanes, nodes, table, i)) };
  }

  #sumTable(lanes: number, nodes: readonly RankNode[], table: Table, i: number): TableGradient | undefined {
    const parts = nodes.filter(({ note }) => note.tables[i] !== null);
    if (parts.length === 0) return undefined;
    if (parts.some(({ note }) => note.tables[i] === 'dense')) {
      const values = parts.map(node => {
        const gradient = node.own?.tables[i];
        return { ...node, own: gradient?.kind === 'dense' ? gradient.grad : undefined };
      });
      return { kind: 'dense', grad: this.#dense.total(lanes, values, table.gradient)! };
    }
    const lists = parts.map((node): ListPart => {
      const gradient = node.own?.tables[i];
      const own = gradient?.kind === 'rows' ? gradient.list : undefined;
      return { from: node.from, to: node.to, rank: node.rank, room: Number(node.note.tables[i]), own };
    });
    const rows = { vocabulary: table.vocabulary, width: table.value.cols };
    const how = this.#options.isDivided(table) ? 'divided' : 'replicated';
    return { kind: 'rows', list: this.#rows[how](lanes, lists, rows) };
  }
}
