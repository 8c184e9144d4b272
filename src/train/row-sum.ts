// Sums a table's gradient rows over all ranks, in the order of the lane tree.
//
// Replicated table: every list goes to every rank, and each rank sums them itself. Sharded table: lists go to the row owners
// inside the group, which sum them to the group's nodes of the tree; then owners of the same rows in different groups exchange
// those sums, and each completes the tree. So replicas get the same bits.
//
// D width of a table.

import type { Communicator } from '../dist/comm/communicator.js';
import type { RankGroups } from '../dist/shard/rank-groups.js';
import { sendLists } from '../dist/shard/send-lists.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { takeList } from '../ops/route-ids.js';
import { disposeRowList, emptyRowList, type RowList, sparseAdd } from '../ops/row-list.js';
import type { Tensor } from '../tensor/tensor.js';
import { ownedRows } from '../util/row-shard.js';
import type { FirstRows } from './first-rows.js';
import { groupLanes, LaneSum, type Partial, putNodes } from './lane-tree.js';
import type { RankPart } from './rank-nodes.js';

/** A list of any rank, and its capacity in rows. */
export interface ListPart extends RankPart<RowList> {
  readonly room: number;
}

/** A subset of the rows: those that the next step reads too, then the others. */
export interface RowPortion {
  rows: FirstRows;
  part: 'first' | 'others';
}

interface Rows {
  vocabulary: number;
  width: number;
}

type Received = Partial<RowList> & { value: RowList };

export class RowSum {
  readonly #device: Device;
  readonly #groups: RankGroups;
  readonly #stream: StreamName;

  constructor(device: Device, groups: RankGroups, stream: StreamName) {
    this.#device = device;
    this.#groups = groups;
    this.#stream = stream;
  }

  /** For a replicated table. */
  replicated(lanes: number, parts: readonly ListPart[], table: Rows): RowList {
    return this.#exchange(lanes, parts, { ranks: this.#groups.world, table });
  }

  /** For a sharded table: this owner's rows, by local row. */
  divided(lanes: number, parts: readonly ListPart[], table: Rows, portion?: RowPortion): RowList {
    const { group, peers, shard, world } = this.#groups;
    const here = { vocabulary: ownedRows(table.vocabulary, shard), width: table.width };
    const own = this.#toOwners(lanes, parts, table, portion);
    if (peers.size === 1) return own[0]!.value!;
    const all = Array.from({ length: peers.size }, (_, g) => {
      const members = parts.filter(({ rank }) => Math.floor(rank / group.size) === g);
      const sum = new LaneSum<number>(lanes, (left, right) => Math.min(left + right, here.vocabulary));
      const rooms = members.map(({ from, to, room }) => ({ from, to, value: Math.min(room, here.vocabulary) }));
      putNodes(sum, groupLanes(lanes, g, { size: group.size, ranks: world.size }), rooms);
      return sum.partials.filter(({ value }) => value !== undefined);
    });
    const nodes = all.flatMap((partials, g) =>
      partials.map(({ from, to, value }, i) => {
        return { from, to, rank: g, room: value!, own: g === peers.rank ? own[i]!.value : undefined };
      }),
    );
    return this.#exchange(lanes, nodes, { ranks: peers, table: here }, portion);
  }

  /** The group's nodes, for this owner's rows. The k-th lists of all ranks share one exchange. */
  #toOwners(lanes: number, parts: readonly ListPart[], table: Rows, portion?: RowPortion): Partial<RowList>[] {
    const { group, world, shard } = this.#groups;
    const here = { vocabulary: ownedRows(table.vocabulary, shard), width: table.width };
    const only = portion && { marked: portion.rows.settled, inside: false };
    const planned = portion?.part === 'first' ? portion.rows.toOwners : undefined;
    const index = Math.floor(world.rank / group.size);
    const byRank = Array.from({ length: group.size }, (_, r) =>
      parts.filter(({ rank }) => rank === index * group.size + r),
    );
    const received = inRounds(byRank, (each, round) => {
      const own = each[group.rank]?.own;
      const rooms = each.map(part => part?.room);
      if (planned) return planned[round]!.move({ own, rooms, table: here }, this.#stream);
      const lists = sendLists(this.#device, group, { own, rooms, table, only }, this.#stream);
      if (own) disposeRowList(own);
      return lists;
    });
    const sum = new LaneSum<RowList>(lanes, (left, right) => this.#add(left, right, here.vocabulary));
    putNodes(sum, groupLanes(lanes, index, { size: group.size, ranks: world.size }), received);
    return sum.partials.filter(({ value }) => value !== undefined);
  }

  /** Every rank of `ranks` receives every list and sums them. The k-th lists of all ranks share one exchange. */
  #exchange(
    lanes: number,
    parts: readonly ListPart[],
    { ranks, table }: { ranks: Communicator; table: Rows },
    portion?: RowPortion,
  ): RowList {
    const byRank = Array.from({ length: ranks.size }, (_, r) => parts.filter(({ rank }) => rank === r));
    const planned = portion?.part === 'first' ? portion.rows.betweenGroups : undefined;
    const received = inRounds(byRank, (each, round) => {
      if (!planned) return this.#gather(each, ranks, table);
      const own = each[ranks.rank]?.own;
      const rooms = each.map(part => part?.room);
      const lists = planned[round]!.move({ own, rooms, table }, this.#stream);
      if (own) disposeRowList(own);
      return lists;
    });
    const without = portion?.part === 'others' ? portion.rows.applied : undefined;
    const sum = new LaneSum<RowList>(lanes, (left, right) => this.#add(left, right, table.vocabulary, without));
    putNodes(sum, { from: 0, to: lanes }, received);
    const total = sum.total()!;
    return without && received.length === 1 ? this.#add(total, this.#nothing(table), table.vocabulary, without) : total;
  }

  /** One list per rank, or none; this rank's own list is returned unchanged. */
  #gather(parts: readonly (ListPart | undefined)[], ranks: Communicator, table: Rows): (RowList | undefined)[] {
    const device = this.#device;
    const own = parts[ranks.rank]?.own;
    using counts = device.tensor([1, ranks.size], 'i64');
    using mine = device.from(BigInt64Array.of(0n), [1, 1], { stream: this.#stream });
    using ones = device.from(new BigInt64Array(ranks.size).fill(1n), [1, ranks.size], { stream: this.#stream });
    if (own) device.call('comm_count_ids').number(0).tensor(own.ids).tensor(mine).submit(this.#stream);
    ranks.allGatherV(device, { send: mine, receive: counts, counts: ones, unit: 1 });
    const room = parts.reduce((sum, part) => sum + (part?.room ?? 0), 0);
    const all = emptyRowList(device, room, { vocabulary: Number.MAX_SAFE_INTEGER, width: table.width });
    const nothing = own ?? this.#nothing(table);
    ranks.allGatherV(device, { send: nothing.ids, receive: all.ids, counts, unit: 1 });
    ranks.allGatherV(device, { send: nothing.rows, receive: all.rows, counts, unit: table.width });
    const lists = parts.map((part, index) => {
      if (!part || part.own) return part?.own;
      const to = emptyRowList(device, part.room, table);
      takeList(device, { list: all, counts, index, to }, this.#stream);
      return to;
    });
    if (!own) disposeRowList(nothing);
    disposeRowList(all);
    return lists;
  }

  #nothing({ width }: Rows): RowList {
    const ids = this.#device.from(Int32Array.of(-1), [1, 1], { stream: this.#stream });
    return { ids, rows: this.#device.tensor([1, width]) };
  }

  #add(left: RowList, right: RowList, vocabulary: number, without?: Tensor<'i32'>): RowList {
    const both = sparseAdd(this.#device, { left, right, vocabulary, without }, this.#stream);
    disposeRowList(left);
    disposeRowList(right);
    return both;
  }
}

/** The lists of all ranks, by rank and lane. The k-th ones share one exchange, which returns what it received from each rank. */
function inRounds(
  byRank: readonly ListPart[][],
  exchange: (each: readonly (ListPart | undefined)[], round: number) => (RowList | undefined)[],
): Received[] {
  const rounds = Math.max(...byRank.map(({ length }) => length));
  const received: Received[][] = byRank.map(() => []);
  for (let round = 0; round < rounds; round++) {
    const each = byRank.map(own => own[round]);
    exchange(each, round).forEach((value, r) => {
      const { from, to } = each[r] ?? { from: 0, to: 0 };
      if (value) received[r]!.push({ from, to, value });
    });
  }
  return received.flat();
}
