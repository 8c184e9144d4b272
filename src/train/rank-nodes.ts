// What ranks announce before they exchange partial sums: the nodes of the lane tree that each holds and their sizes, and
// requests for after the step.

import { type Communicator, gatherJson } from '../dist/comm/communicator.js';
import type { Gradients } from '../optim/gradients.js';
import { type FactorsNote, noteFactors } from './factor-sum.js';
import type { LaneRange, Partial } from './lane-tree.js';

/** What a rank requests after this step; if any rank does, all comply. */
export interface Wishes {
  /** Stop: an interruption was requested. */
  stop: boolean;
  /** Write a checkpoint: it is due. */
  save: boolean;
}

/** Announces one of a rank's nodes, so that the others can allocate buffers. */
interface NodeNote extends LaneRange {
  /** By parameter, whether it has a gradient. */
  dense: boolean[];
  /** By table: none, a gradient of all rows, a list with this capacity, or contributions. */
  tables: (null | 'dense' | number | FactorsNote)[];
}

interface RankNote extends Wishes {
  nodes: NodeNote[];
}

/** A node of any rank, with its value if it is this rank's. */
export interface RankNode extends LaneRange {
  readonly rank: number;
  readonly note: NodeNote;
  readonly own: Gradients | undefined;
}

/** One gradient of a node; its value is present if the node is this rank's. */
export interface RankPart<T> extends LaneRange {
  readonly rank: number;
  readonly own: T | undefined;
}

/** The nodes of all ranks, by rank and lane. Collective. */
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
    if (gradient.kind === 'contributions') return noteFactors(gradient.contributions);
    return gradient.kind === 'dense' ? ('dense' as const) : gradient.list.ids.size;
  });
  return { from, to, dense: value!.dense.map(grad => grad !== undefined), tables };
}
