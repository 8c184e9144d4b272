// What ranks tell each other about their partial sums before anything moves: which nodes of the lane tree they bring, and
// how large. And what a rank wishes to happen after the step.

import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import type { Gradients } from '../optim/gradients.js';
import type { LaneRange, Partial } from './lane-tree.js';

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
  /** By table: nothing, a gradient of all rows, or a list with room for so many. */
  tables: (null | 'dense' | number)[];
}

interface RankNote extends Wishes {
  nodes: NodeNote[];
}

/** A node of any rank, and its value where the rank is this one. */
export interface RankNode extends LaneRange {
  readonly rank: number;
  readonly note: NodeNote;
  readonly own: Gradients | undefined;
}

/** One gradient of a node on its way: here if the node is this rank's. */
export interface RankPart<T> extends LaneRange {
  readonly rank: number;
  readonly own: T | undefined;
}

/** The nodes that ranks bring, by rank and lane. Collective. */
export async function gatherNodes(
  world: Communicator,
  partials: readonly Partial<Gradients>[],
  wishes: Wishes,
): Promise<Wishes & { nodes: RankNode[] }> {
  const mine = partials.filter(({ value }) => value !== undefined);
  const notes = await gatherJson<RankNote>(world, { ...wishes, nodes: mine.map(noteOf) });
  const nodes = notes.flatMap((note, rank) =>
    note.nodes.map((node, i): RankNode => {
      const own = rank === world.rank ? mine[i]!.value : undefined;
      return { from: node.from, to: node.to, rank, note: node, own };
    }),
  );
  return { stop: notes.some(({ stop }) => stop), save: notes.some(({ save }) => save), nodes };
}

function noteOf({ from, to, value }: Partial<Gradients>): NodeNote {
  const tables = value!.tables.map(gradient => {
    if (!gradient) return null;
    if (gradient.kind === 'contributions') throw new Error('gradients of several ranks must be reduced');
    return gradient.kind === 'dense' ? ('dense' as const) : gradient.list.ids.size;
  });
  return { from, to, dense: value!.dense.map(grad => grad !== undefined), tables };
}
