// The gradient rows to sum first: those that the next step reads too. Which these are is agreed while the step computes, so that
// between two steps nothing is sent but rows.
//
// An owner needs the rows that its own group reads again. So inside a group a rank sends its owners what any group reads again,
// and an owner sends each of its peers what the peer's group reads again. Everything else follows later, except what every
// group already has.

import type { RankGroups } from '../dist/shard/rank-groups.js';
import type { RowFetch } from '../dist/shard/row-fetch.js';
import { routeTo } from '../dist/shard/send-lists.js';
import { SendPlan } from '../dist/shard/send-plan.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import { changedRows, type Requests } from '../ops/changed-rows.js';
import { type Asked, askedRows } from '../ops/read-again.js';
import type { RoutedIds } from '../ops/route-ids.js';
import type { Tensor } from '../tensor/tensor.js';
import type { AskedRows } from './asked-rows.js';
import { groupLanes, type LaneRange, lanesOf, nodesOf } from './lane-tree.js';

export interface FirstRowsOf {
  /** This rank's, by round. A lane's gradient has no other rows than it fetched. */
  fetches: readonly RowFetch[];
  /** The most rows that each lane reads, on all ranks; 0 for an empty lane. */
  laneRows: readonly number[];
  /** Number of rows of this shard. */
  here: number;
  /** What the next step reads. */
  next: AskedRows;
}

export class FirstRows {
  /** Lists of this rank's nodes of the lane tree, to the owners. */
  readonly toOwners: readonly SendPlan[];
  /** Sums of the group's nodes, between owners of the same shard. */
  readonly betweenGroups: readonly SendPlan[];
  /** Rows that are complete once these are summed: local ids by owner, for each fetch. */
  readonly settled: readonly Requests[];
  /** Rows of this shard that are complete on this rank. */
  readonly applied: Tensor<'i32'>;
  readonly #device: Device;
  readonly #groups: RankGroups;
  readonly #of: FirstRowsOf;
  readonly #stream: StreamName;

  /** Collective. */
  constructor(device: Device, groups: RankGroups, of: FirstRowsOf, stream: StreamName) {
    this.#device = device;
    this.#groups = groups;
    this.#of = of;
    this.#stream = stream;
    const { next, fetches } = of;
    const { world, group, peers } = groups;
    this.applied = next.own;
    const again = fetches.map(fetch => fetch.among(next.any, stream));
    this.settled = next.every === next.any ? again : fetches.map(fetch => fetch.among(next.every, stream));
    const members = Array.from({ length: group.size }, (_, member) => this.#nodes(this.#lanes(member)));
    const owned = { size: group.size, ranks: world.size };
    const ofGroups = Array.from({ length: peers.size }, (_, g) =>
      this.#nodes(groupLanes(of.laneRows.length, g, owned)),
    );
    this.toOwners = rounds(members, (nodes, k) => this.#planToOwners(nodes, members[group.rank]![k], again));
    const received = (node: LaneRange): Asked[] =>
      this.toOwners.map((plan, k) => ({ ...plan.received, senders: sendersIn(node, members, k) }));
    this.betweenGroups =
      peers.size === 1
        ? []
        : rounds(ofGroups, (nodes, k) => {
            const own = ofGroups[peers.rank]![k];
            return this.#planBetweenGroups(nodes, own && received(own));
          });
    if (this.settled !== again) disposeAll(again);
  }

  dispose(): void {
    for (const plan of [...this.toOwners, ...this.betweenGroups]) plan.dispose();
    disposeAll(this.settled);
  }

  #planToOwners(nodes: readonly LaneRange[], own: LaneRange | undefined, marked: readonly Requests[]): SendPlan {
    const { group } = this.#groups;
    const { from: first } = this.#lanes(group.rank);
    const fetched = own && this.#of.fetches.slice(own.from - first, own.to - first).map(({ asked }) => asked);
    const room = fetched?.reduce((sum, { ids }) => sum + ids.size, 0) ?? 0;
    const agreed = fetched && askedRows(this.#device, fetched, { room, stream: this.#stream });
    const sent = routeTo(this.#device, group, { ids: agreed, only: { marked, inside: true } }, this.#stream);
    return new SendPlan(this.#device, group, { sent, agreed, room: this.#room(nodes) }, this.#stream);
  }

  #planBetweenGroups(nodes: readonly LaneRange[], own: readonly Asked[] = []): SendPlan {
    const device = this.#device;
    const most = own.reduce((sum, { ids }) => sum + ids.size, 0);
    const agreed = askedRows(device, own, { room: Math.min(most, this.#of.here), stream: this.#stream });
    const sent = toReaders(device, this.#of.next.byGroup!, agreed, this.#stream);
    return new SendPlan(device, this.#groups.peers, { sent, agreed, room: this.#room(nodes) }, this.#stream);
  }

  /** The most rows of one list for each node. */
  #room(nodes: readonly LaneRange[]): number {
    const { laneRows, here } = this.#of;
    const most = ({ from, to }: LaneRange): number => laneRows.slice(from, to).reduce((sum, rows) => sum + rows, 0);
    return nodes.reduce((sum, node) => sum + Math.min(most(node), here), 0);
  }

  /** The lanes of a rank of this group. */
  #lanes(member: number): LaneRange {
    const { world, group } = this.#groups;
    return lanesOf(this.#of.laneRows.length, world.rank - group.rank + member, world.size);
  }

  #nodes(range: LaneRange): LaneRange[] {
    const { laneRows } = this.#of;
    return nodesOf(laneRows.length, range, lane => laneRows[lane]! > 0);
  }
}

/** The ids of a list that each group reads, with their places in the list. */
function toReaders(device: Device, readers: Requests, list: Tensor<'i32'>, stream: StreamName): RoutedIds {
  const [ids, places] = (['id', 'list'] as const).map(from => changedRows(device, readers, { list, from }, stream));
  for (const unused of [ids!.at, places!.at, places!.counts]) unused.dispose();
  return { local: ids!.from, order: places!.from, counts: ids!.counts };
}

/** One plan for the k-th nodes of all ranks. */
function rounds<T>(nodes: readonly LaneRange[][], plan: (kth: LaneRange[], k: number) => T): T[] {
  const most = Math.max(...nodes.map(({ length }) => length));
  return Array.from({ length: most }, (_, k) =>
    plan(
      nodes.flatMap(own => own[k] ?? []),
      k,
    ),
  );
}

/** The ranks of a group whose k-th nodes are inside a node of the group. */
function sendersIn({ from, to }: LaneRange, members: readonly LaneRange[][], k: number): [from: number, to: number] {
  const inside = members.map(own => own[k] !== undefined && own[k].from >= from && own[k].to <= to);
  return [Math.max(0, inside.indexOf(true)), inside.lastIndexOf(true) + 1];
}

function disposeAll(lists: readonly Requests[]): void {
  for (const { ids, counts } of lists) {
    ids.dispose();
    counts.dispose();
  }
}
