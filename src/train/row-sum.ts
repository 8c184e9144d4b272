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
import type { RowChoice } from '../ops/read-again.js';
import { takeList } from '../ops/route-ids.js';
import { disposeRowList, emptyRowList, type RowList, sparseAdd } from '../ops/row-list.js';
import { ownedRows } from '../util/row-shard.js';
import { type LaneRange, LaneSum, lanesOf, type Partial, putNodes } from './lane-tree.js';
import type { RankPart } from './rank-nodes.js';

/** A list of any rank, and its capacity in rows. */
export interface ListPart extends RankPart<RowList> {
  readonly room: number;
}

interface Rows {
  vocabulary: number;
  width: number;
}

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
    return this.#exchange(lanes, parts, this.#groups.world, table);
  }

  /** For a sharded table: this owner's rows, by local row. With a choice, a subset: first the rows inside it, then the others. */
  divided(lanes: number, parts: readonly ListPart[], table: Rows, only?: RowChoice): RowList {
    const { group, peers, shard, world } = this.#groups;
    const here = { vocabulary: ownedRows(table.vocabulary, shard), width: table.width };
    const own = this.#toOwners(lanes, parts, table, only);
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
    return this.#exchange(lanes, nodes, peers, here);
  }

  /** The group's nodes, for this owner's rows. The k-th lists of all ranks share one exchange. */
  #toOwners(lanes: number, parts: readonly ListPart[], table: Rows, only?: RowChoice): Partial<RowList>[] {
    const { group, world, shard } = this.#groups;
    const here = ownedRows(table.vocabulary, shard);
    const index = Math.floor(world.rank / group.size);
    const byRank = Array.from({ length: group.size }, (_, r) =>
      parts.filter(({ rank }) => rank === index * group.size + r),
    );
    const rounds = Math.max(...byRank.map(own => own.length));
    const received: (Partial<RowList> & { value: RowList })[][] = byRank.map(() => []);
    for (let round = 0; round < rounds; round++) {
      const rooms = byRank.map(own => own[round]?.room);
      const lists = sendLists(
        this.#device,
        group,
        { own: byRank[group.rank]![round]?.own, rooms, table, only },
        this.#stream,
      );
      lists.forEach((value, r) => {
        const { from, to } = byRank[r]![round] ?? { from: 0, to: 0 };
        if (value) received[r]!.push({ from, to, value });
      });
    }
    const sum = new LaneSum<RowList>(lanes, (left, right) => this.#add(left, right, here));
    putNodes(sum, groupLanes(lanes, index, { size: group.size, ranks: world.size }), received.flat());
    return sum.partials.filter(({ value }) => value !== undefined);
  }

  /** Every rank of `ranks` receives every list and sums them. The k-th lists of all ranks share one exchange. */
  #exchange(lanes: number, parts: readonly ListPart[], ranks: Communicator, table: Rows): RowList {
    const byRank = Array.from({ length: ranks.size }, (_, r) => parts.filter(({ rank }) => rank === r));
    const rounds = Math.max(...byRank.map(({ length }) => length));
    const received: (Partial<RowList> & { value: RowList })[][] = byRank.map(() => []);
    for (let round = 0; round < rounds; round++) {
      const each = byRank.map(lists => lists[round]);
      this.#gather(each, ranks, table).forEach((value, r) => {
        const { from, to } = each[r] ?? { from: 0, to: 0 };
        if (value) received[r]!.push({ from, to, value });
      });
    }
    const sum = new LaneSum<RowList>(lanes, (left, right) => this.#add(left, right, table.vocabulary));
    putNodes(sum, { from: 0, to: lanes }, received.flat());
    return sum.total()!;
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
    const nothing = own ?? emptyRowList(device, 1, table);
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

  #add(left: RowList, right: RowList, vocabulary: number): RowList {
    const both = sparseAdd(this.#device, { left, right, vocabulary }, this.#stream);
    disposeRowList(left);
    disposeRowList(right);
    return both;
  }
}

/** The lanes that the ranks of a group compute. */
function groupLanes(lanes: number, group: number, { size, ranks }: { size: number; ranks: number }): LaneRange {
  const first = lanesOf(lanes, group * size, ranks);
  const last = lanesOf(lanes, (group + 1) * size - 1, ranks);
  return { from: first.from, to: last.to };
}
