// The sum of a step's gradients over all ranks. Each rank brings whole nodes of the lane tree; whoever adds them up does it
// in the tree's order, so the bits are those of one rank that computed all lanes.
//
// A dense gradient is cut into one piece per rank: pieces go to their owner, who adds them up and sends the sum to all. Of
// a table only touched rows move, to every rank, and each adds them up for itself. All of it is enqueued: an exchange waits
// for the tensors it moves and for nothing else, so gradients that are final leave while backward still runs.
//
// W ranks, D width of a table.

import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import type { Device } from '../native/device.js';
import { add } from '../ops/elementwise.js';
import type { DenseGradient } from '../ops/dense-gradient.js';
import { disposeRowList, emptyRowList, type RowList, sparseAdd } from '../ops/row-list.js';
import type { Table } from '../ops/table.js';
import type { Gradients, TableGradient, Trained } from '../optim/gradients.js';
import type { Tensor } from '../tensor/tensor.js';
import { type LaneRange, LaneSum, type Partial } from './lane-tree.js';

/** What a rank wishes to happen after this step; if any does, all do it. */
export interface Wishes {
  /** Finish: somebody asked for it. */
  stop: boolean;
  /** Write a checkpoint: it is time. */
  save: boolean;
}

/** What a rank tells about one of its nodes, so that the others make room. */
interface NodeNote extends LaneRange {
  /** By parameter, whether it has a gradient. */
  dense: boolean[];
  /** By table: nothing, a gradient of all rows, or a list with this capacity. */
  tables: (null | 'dense' | number)[];
}

interface RankNote extends Wishes {
  nodes: NodeNote[];
}

/** A node of any rank, and its value where the rank is this one. */
interface RankNode extends LaneRange {
  rank: number;
  note: NodeNote;
  own: Gradients | undefined;
}

/** A node's value on its way: present, and here if it is this rank's. */
interface Part<T> {
  node: RankNode;
  own: T | undefined;
}

export class RankSum {
  readonly #device: Device;
  readonly #trained: Trained;
  readonly #world: Communicator;
  /** Counts on the device, by their values. */
  readonly #counts = new Map<string, Tensor<'i64'>>();
  /** Stands for what a rank does not send. */
  readonly #nothing: Tensor<'f32'>;

  constructor(device: Device, trained: Trained, world: Communicator) {
    this.#device = device;
    this.#trained = trained;
    this.#world = world;
    this.#nothing = device.from(new Float32Array(1));
  }

  /** Uses the partial sums up. Collective: every rank calls it for every step, with or without work. */
  async total(
    lanes: number,
    partials: readonly Partial<Gradients>[],
    wishes: Wishes,
  ): Promise<Wishes & { gradients: Gradients | undefined }> {
    const mine = partials.filter(({ value }) => value !== undefined);
    const notes = await gatherJson<RankNote>(this.#world, { ...wishes, nodes: mine.map(noteOf) });
    const nodes = notes.flatMap((note, rank) =>
      note.nodes.map((node, i): RankNode => {
        const own = rank === this.#world.rank ? mine[i]!.value : undefined;
        return { from: node.from, to: node.to, rank, note: node, own };
      }),
    );
    return {
      stop: notes.some(({ stop }) => stop),
      save: notes.some(({ save }) => save),
      gradients: nodes.length === 0 ? undefined : this.#sum(lanes, nodes),
    };
  }

  #sum(lanes: number, nodes: readonly RankNode[]): Gradients {
    const { parameters, tables } = this.#trained;
    const dense: (Tensor<'f32'> | undefined)[] = parameters.map(() => undefined);
    // The last parameters come first: their gradients are final first.
    for (let i = parameters.length - 1; i >= 0; i--) {
      const parts = nodes.filter(({ note }) => note.dense[i]).map(node => ({ node, own: node.own?.dense[i] }));
      dense[i] = this.#sumDense(lanes, parts, parameters[i]!.gradient);
    }
    return { dense, tables: tables.map((table, i) => this.#sumTable(lanes, nodes, table, i)) };
  }

  #sumTable(lanes: number, nodes: readonly RankNode[], table: Table, i: number): TableGradient | undefined {
    const parts = nodes.filter(({ note }) => note.tables[i] !== null);
    if (parts.length === 0) return undefined;
    const own = (node: RankNode) => node.own?.tables[i];
    if (parts.some(({ note }) => note.tables[i] === 'dense')) {
      const values = parts.map(node => {
        const gradient = own(node);
        return { node, own: gradient?.kind === 'dense' ? gradient.grad : undefined };
      });
      return { kind: 'dense', grad: this.#sumDense(lanes, values, table.gradient)! };
    }
    const lists = parts.map(node => {
      const gradient = own(node);
      return { node, own: gradient?.kind === 'rows' ? gradient.list : undefined };
    });
    return { kind: 'rows', list: this.#sumRows(lanes, lists, table, i) };
  }

  /** Reduce-scatter in tree order, then all-gather. */
  #sumDense(lanes: number, parts: readonly Part<Tensor<'f32'>>[], gradient: DenseGradient): Tensor<'f32'> | undefined {
    if (parts.length === 0) return undefined;
    const { rank, size } = this.#world;
    const mine = parts.filter(({ own }) => own !== undefined);
    const total = mine[0]?.own ?? gradient.spare();
    const start = (r: number) => Math.floor((total.size * r) / size);
    const pieces = Array.from({ length: size }, (_, r) => start(r + 1) - start(r));
    const piece = pieces[rank]!;
    const received = this.#receivePieces(parts, pieces);
    const sum = new LaneSum<Tensor<'f32'>>(lanes, (left, right) => {
      if (piece > 0) add(this.#device, 1, { x: right, y: left });
      return left;
    });
    const views = parts.map(({ node }, k) => ({ node, value: received.views[k]! }));
    putAll(sum, lanes, views);
    const send = piece > 0 ? sum.total()! : this.#nothing;
    this.#world.allGatherV(this.#device, { send, receive: total, counts: this.#countsOf(pieces), unit: 1 });
    for (const { own } of mine.slice(1)) gradient.giveBack(own!);
    for (const tensor of received.owned) tensor.dispose();
    return total;
  }

  /** This rank's piece of every part. The k-th parts of all ranks travel in one exchange. */
  #receivePieces(
    parts: readonly Part<Tensor<'f32'>>[],
    pieces: readonly number[],
  ): { views: Tensor<'f32'>[]; owned: Tensor[] } {
    const { rank, size } = this.#world;
    const piece = pieces[rank]!;
    const views: Tensor<'f32'>[] = parts.map(() => this.#nothing);
    const owned: Tensor[] = [];
    const of = (r: number) => parts.flatMap(({ node }, k) => (node.rank === r ? [k] : []));
    const byRank = Array.from({ length: size }, (_, r) => of(r));
    const rounds = Math.max(...byRank.map(own => own.length));
    for (let round = 0; round < rounds; round++) {
      const senders = byRank.flatMap((own, r) => (own.length > round ? [r] : []));
      const receive = this.#device.tensor([1, Math.max(1, senders.length * piece)]);
      owned.push(receive);
      const mine = byRank[rank]![round];
      this.#world.allToAllV(this.#device, {
        send: mine === undefined ? this.#nothing : parts[mine]!.own!,
        sendCounts: this.#countsOf(pieces.map(n => (mine === undefined ? 0 : n))),
        receive,
        receiveCounts: this.#countsOf(byRank.map(own => (own.length > round ? piece : 0))),
        unit: 1,
      });
      if (piece === 0) continue;
      senders.forEach((r, place) => {
        const view = receive.columns(place * piece, piece);
        owned.unshift(view);
        views[byRank[r]![round]!] = view;
      });
    }
    return { views, owned };
  }

  /** Every rank gets every list and adds them up. */
  #sumRows(lanes: number, parts: readonly Part<RowList>[], table: Table, i: number): RowList {
    const { rank, size } = this.#world;
    const device = this.#device;
    const width = table.value.cols;
    const each = Array.from({ length: size }, (_, r) => parts.filter(({ node }) => node.rank === r).length);
    using mine = device.tensor([1, Math.max(1, each[rank]!)], 'i64');
    using counts = device.tensor([1, parts.length], 'i64');
    parts
      .filter(({ own }) => own !== undefined)
      .forEach(({ own }, k) => device.call('comm_count_ids').number(k).tensor(own!.ids).tensor(mine).submit());
    this.#world.allGatherV(device, { send: mine, receive: counts, counts: this.#countsOf(each), unit: 1 });
    const lists = parts.map(({ node, own }, index) => {
      const room = Number(node.note.tables[i]);
      const value = own ?? emptyRowList(device, room, { vocabulary: table.vocabulary, width });
      this.#world.broadcast(device, value.ids, node.rank);
      this.#world.broadcast(device, value.rows, node.rank, { counts, index, unit: width });
      return { node, value };
    });
    const sum = new LaneSum<RowList>(lanes, (left, right) => {
      const both = sparseAdd(device, { left, right, vocabulary: table.vocabulary });
      disposeRowList(left);
      disposeRowList(right);
      return both;
    });
    putAll(sum, lanes, lists);
    return sum.total()!;
  }

  #countsOf(values: readonly number[]): Tensor<'i64'> {
    const key = values.join();
    const known = this.#counts.get(key);
    if (known) return known;
    const made = this.#device.from(BigInt64Array.from(values, BigInt));
    this.#counts.set(key, made);
    return made;
  }
}

function noteOf({ from, to, value }: Partial<Gradients>): NodeNote {
  const tables = value!.tables.map(gradient => {
    if (!gradient) return null;
    if (gradient.kind === 'contributions') throw new Error('gradients of several ranks must be reduced');
    return gradient.kind === 'dense' ? ('dense' as const) : gradient.list.ids.size;
  });
  return { from, to, dense: value!.dense.map(grad => grad !== undefined), tables };
}

/** Puts the nodes that are there, and nothing for the lanes between them. */
function putAll<T>(sum: LaneSum<T>, lanes: number, values: readonly { node: LaneRange; value: T }[]): void {
  let next = 0;
  const skipTo = (lane: number) => {
    while (next < lane) sum.put(next++, undefined);
  };
  for (const { node, value } of values) {
    skipTo(node.from);
    sum.putNode({ from: node.from, to: node.to, value });
    next = node.to;
  }
  skipTo(lanes);
}
