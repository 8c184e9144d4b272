// Sums a step's gradients over all ranks. Each rank contributes whole nodes of the lane tree, and they are added in the
// tree's order, so the bits are those of one rank that computes all lanes. Dense parameters: slice-sums.ts; gradients of
// all rows of a table: dense-sum.ts; lists of rows: row-sum.ts; factors of rows: factor-sum.ts. Everything is enqueued: an exchange waits only for the
// tensors it moves, so final gradients are sent while backward still runs.

import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { Table } from '../ops/table.js';
import type { Gradients, GradientSums, TableGradient, TableGradients, Trained } from '../optim/gradients.js';
import type { GradientsToApply } from '../optim/optimizer.js';
import type { Portion } from '../optim/dense-slices.js';
import { DenseSum } from './dense-sum.js';
import { FactorSum, type FactorsNote, type FactorsPart } from './factor-sum.js';
import type { FirstRows } from './first-rows.js';
import type { Partial } from './lane-tree.js';
import { gatherNodes, type RankNode, type Wishes } from './rank-nodes.js';
import { type ListPart, type RowPortion, RowSum } from './row-sum.js';
import { SliceSums } from './slice-sums.js';
import { STAGES } from './stages.js';

export interface RankSumOptions {
  device: Device;
  trained: Trained;
  /** How dense parameters are divided over the ranks. */
  portions: readonly Portion[];
  groups: RankGroups;
  gradients: GradientSums;
  /** Sharded tables: this rank has only some of the rows. */
  isDivided: (table: Table) => boolean;
  /** Stream on which rows are added. */
  stream: StreamName;
  /** Gradients are sent and applied as soon as they are final; otherwise after backward. */
  early: boolean;
}

interface TablesToSum {
  lanes: number;
  nodes: readonly RankNode[];
  /** For sharded tables; other tables are complete at once. */
  portion: RowPortion | undefined;
}

export class RankSum {
  readonly #options: RankSumOptions;
  readonly #dense: DenseSum;
  readonly #slices: SliceSums;
  readonly #rows: RowSum;
  readonly #factors: FactorSum;

  constructor(options: RankSumOptions) {
    const { device, groups, stream, trained, portions, early } = options;
    this.#options = options;
    this.#dense = new DenseSum(device, groups.world);
    const slices = { device, world: groups.world, dense: this.#dense, stream: early ? 'comm' : 'compute' } as const;
    this.#slices = new SliceSums(slices, trained.parameters, portions);
    this.#rows = new RowSum(device, groups, stream);
    this.#factors = new FactorSum(device, groups.world, options.gradients);
  }

  /**
   * Dense gradients of this rank's slices, and gradients of tables, which are summed on request. Consumes the partial sums.
   * Collective: every rank calls it in every step, with or without work, and requests and shares in the same order.
   * In sharded tables, rows that the next step reads too come `first`, the others on a second request.
   */
  async total(
    lanes: number,
    partials: readonly Partial<Gradients>[],
    wishes: Wishes,
    first?: FirstRows,
  ): Promise<Wishes & { gradients: GradientsToApply | undefined }> {
    const { nodes, ...agreed } = await gatherNodes(this.#options.groups.world, partials, wishes);
    if (!this.#options.early) await this.#dense.computed();
    return { ...agreed, gradients: nodes.length === 0 ? undefined : this.#sum(lanes, nodes, first) };
  }

  #sum(lanes: number, nodes: readonly RankNode[], rows?: FirstRows): GradientsToApply {
    return {
      dense: this.#slices.total(lanes, nodes),
      tables: () => this.#sumTables(lanes, nodes, rows && { rows, part: 'first' }),
      ...(rows && { later: () => this.#sumTables(lanes, nodes, { rows, part: 'others' }) }),
    };
  }

  #sumTables(lanes: number, nodes: readonly RankNode[], portion?: RowPortion): TableGradients {
    const { device, trained } = this.#options;
    device.tag(-1, STAGES.indexOf('reduce')); // to tell rows from dense gradients in the spans
    const home = device.home(this.#options.stream);
    const tables = trained.tables.map((table, i) => this.#sumTable({ lanes, nodes, portion }, table, i));
    device.tag(-1, STAGES.indexOf('apply'));
    device.home(home);
    return tables;
  }

  #sumTable({ lanes, nodes, portion }: TablesToSum, table: Table, i: number): TableGradient | undefined {
    const parts = nodes.filter(({ note }) => note.tables[i] !== null);
    const divided = this.#options.isDivided(table);
    if (parts.length === 0 || (portion?.part === 'others' && !divided)) return undefined;
    if (parts.some(({ note }) => note.tables[i] === 'dense')) {
      const values = parts.map(node => {
        const gradient = node.own?.tables[i];
        return { ...node, own: gradient?.kind === 'dense' ? gradient.grad : undefined };
      });
      return { kind: 'dense', grad: this.#dense.total(lanes, values, table.gradient)! };
    }
    const factors = parts.flatMap((node): FactorsPart[] => {
      const gradient = node.own?.tables[i];
      const note = node.note.tables[i];
      const own = gradient?.kind === 'contributions' ? gradient.contributions : undefined;
      return isFactors(note) ? [{ from: node.from, to: node.to, rank: node.rank, note, own }] : [];
    });
    if (factors.length > 0) return this.#factors.total({ lanes, parts: factors, table, stream: this.#options.stream });
    const lists = parts.map((node): ListPart => {
      const gradient = node.own?.tables[i];
      const own = gradient?.kind === 'rows' ? gradient.list : undefined;
      return { from: node.from, to: node.to, rank: node.rank, room: Number(node.note.tables[i]), own };
    });
    const rows = { vocabulary: table.vocabulary, width: table.value.cols };
    const list = divided ? this.#rows.divided(lanes, lists, rows, portion) : this.#rows.replicated(lanes, lists, rows);
    return { kind: 'rows', list };
  }
}

function isFactors(note: null | undefined | string | number | FactorsNote): note is FactorsNote {
  return typeof note === 'object' && note !== null;
}
