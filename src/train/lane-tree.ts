// The order in which the lanes of a step are summed: one binary tree over lane numbers, a function of their count alone.
// A node splits at the largest power of two below its size and is the sum of its two parts; an absent part is skipped.
// A worker that computes a range of lanes sums the nodes inside it as it goes and is left with whole nodes, which are
// combined in the tree's order wherever they meet. So the sum does not depend on the number of workers.

export interface LaneRange {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** The sum over a node of the tree; undefined when all of its lanes are empty. */
export interface Partial<T> extends LaneRange {
  readonly value: T | undefined;
}

/** Where a node of more than one lane splits. */
function splitOf({ from, to }: LaneRange): number {
  return from + 2 ** (Math.ceil(Math.log2(to - from)) - 1);
}

/** Whether the tree over `lanes` lanes has this node. */
export function isNode(lanes: number, { from, to }: LaneRange): boolean {
  let node: LaneRange = { from: 0, to: lanes };
  while (node.from !== from || node.to !== to) {
    if (node.to - node.from <= to - from) return false;
    const split = splitOf(node);
    if (from < split && to > split) return false;
    node = from < split ? { from: node.from, to: split } : { from: split, to: node.to };
  }
  return true;
}

/** The lanes that worker `worker` of `workers` computes: contiguous, as evenly as possible. */
export function lanesOf(lanes: number, worker: number, workers: number): LaneRange {
  const start = (w: number): number => Math.floor((lanes * w) / workers);
  return { from: start(worker), to: start(worker + 1) };
}

/** The lanes that the workers of a group of `size` compute. */
export function groupLanes(lanes: number, group: number, { size, ranks }: { size: number; ranks: number }): LaneRange {
  const first = lanesOf(lanes, group * size, ranks);
  const last = lanesOf(lanes, (group + 1) * size - 1, ranks);
  return { from: first.from, to: last.to };
}

/** The nodes that a range of lanes is summed to, except those whose lanes are all empty. */
export function nodesOf(lanes: number, { from, to }: LaneRange, isBusy: (lane: number) => boolean): LaneRange[] {
  const sum = new LaneSum<true>(lanes, () => true);
  for (let lane = from; lane < to; lane++) sum.put(lane, isBusy(lane) || undefined);
  return sum.partials.filter(({ value }) => value);
}

/** Adds up lanes, or nodes, that come in ascending order. Keeps at most one node per level. */
export class LaneSum<T> {
  readonly #lanes: number;
  readonly #add: (left: T, right: T) => T;
  readonly #nodes: Partial<T>[] = [];

  /** `add` consumes both operands. */
  constructor(lanes: number, add: (left: T, right: T) => T) {
    this.#lanes = lanes;
    this.#add = add;
  }

  /** Adds the next lane; undefined when it is empty. */
  put(lane: number, value: T | undefined): void {
    this.putNode({ from: lane, to: lane + 1, value });
  }

  /** Adds the next node, such as another worker's partial sum. */
  putNode(node: Partial<T>): void {
    const last = this.#nodes.at(-1);
    if (last && last.to !== node.from) {
      throw new RangeError(`lanes ${node.from} to ${node.to - 1} do not follow lane ${last.to - 1}`);
    }
    let right = node;
    for (let left = last; left && isNode(this.#lanes, { from: left.from, to: right.to }); left = this.#nodes.at(-1)) {
      this.#nodes.pop();
      right = { from: left.from, to: right.to, value: this.#both(left.value, right.value) };
    }
    this.#nodes.push(right);
  }

  /** The partial sums so far: whole nodes, in order. */
  get partials(): readonly Partial<T>[] {
    return this.#nodes;
  }

  /** The sum of all lanes; absent when all were empty. */
  total(): T | undefined {
    const [root] = this.#nodes;
    if (root?.from === 0 && root.to === this.#lanes) return root.value;
    const seen = this.#nodes.map(({ from, to }) => `${from} to ${to - 1}`).join(', ');
    throw new RangeError(`lanes 0 to ${this.#lanes - 1} are not complete yet, only ${seen || 'none'}`);
  }

  #both(left: T | undefined, right: T | undefined): T | undefined {
    if (left === undefined) return right;
    return right === undefined ? left : this.#add(left, right);
  }
}

/** Adds the nodes of a range, and empty lanes between them. */
export function putNodes<T>(sum: LaneSum<T>, range: LaneRange, nodes: readonly Partial<T>[]): void {
  let next = range.from;
  const skipTo = (lane: number): void => {
    while (next < lane) sum.put(next++, undefined);
  };
  for (const node of nodes) {
    skipTo(node.from);
    sum.putNode({ from: node.from, to: node.to, value: node.value });
    next = node.to;
  }
  skipTo(range.to);
}
