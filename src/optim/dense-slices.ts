// Assigns the elements of the dense parameters to ranks (ZeRO-1): each rank sums gradients, keeps optimiser state and updates
// only its own elements. A function of parameter sizes and number of ranks.
//
// A parameter is split into portions, a portion into slices of at most 1 MB, one per rank in rank order. Slices begin at
// multiples of SQUARE_TILE, so that their square sums add up to the bits of the whole. If there are fewer tiles than ranks,
// they go to the ranks with the least so far.

import type { Parameter } from '../ops/parameter.js';
import { SQUARE_TILE } from '../ops/square-sum.js';
import type { Tensor } from '../tensor/tensor.js';

/** Maximum tiles per slice: 1 MB. */
const MOST_TILES = 16;

/** Elements of a parameter that are exchanged at once. */
export interface Portion {
  /** Index of the parameter. */
  readonly parameter: number;
  readonly start: number;
  /** Elements of each rank's slice; slices are consecutive. */
  readonly counts: readonly number[];
}

/** Elements of a parameter that this rank updates. */
export interface DenseSlice {
  readonly parameter: number;
  readonly start: number;
  /** A view of the parameter. */
  readonly value: Tensor<'f32'>;
}

export function divideDense(sizes: readonly number[], ranks: number): Portion[] {
  const dealt: number[] = Array.from({ length: ranks }, () => 0);
  const most = ranks * MOST_TILES * SQUARE_TILE;
  return sizes.flatMap((size, parameter) =>
    Array.from({ length: Math.ceil(size / most) }, (_, i): Portion => {
      const start = i * most;
      const counts = dealTiles(Math.min(most, size - start), dealt);
      counts.forEach((count, rank) => (dealt[rank]! += count));
      return { parameter, start, counts };
    }),
  );
}

/** Elements of each rank; the remaining tiles go to the ranks that were dealt the fewest so far. */
function dealTiles(elements: number, dealt: readonly number[]): number[] {
  const tiles = Math.ceil(elements / SQUARE_TILE);
  const rest = tiles % dealt.length;
  const leastFirst = dealt.map((_, rank) => rank).sort((a, b) => dealt[a]! - dealt[b]! || a - b);
  const extra = new Set(leastFirst.slice(0, rest));
  let left = elements;
  return dealt.map((_, rank) => {
    const own = Math.floor(tiles / dealt.length) + (extra.has(rank) ? 1 : 0);
    const count = Math.min(left, own * SQUARE_TILE);
    left -= count;
    return count;
  });
}

/** Offset of a rank's slice of a portion in its parameter. */
export function sliceStart({ start, counts }: Portion, rank: number): number {
  return counts.slice(0, rank).reduce((sum, count) => sum + count, start);
}

/** A rank's slices, in the order of the portions; portions without a slice of this rank are skipped. */
export function slicesOf(parameters: readonly Parameter[], portions: readonly Portion[], rank: number): DenseSlice[] {
  return portions.flatMap(portion => {
    const [count, start] = [portion.counts[rank]!, sliceStart(portion, rank)];
    const { value } = parameters[portion.parameter]!;
    return count > 0 ? [{ parameter: portion.parameter, start, value: value.range(start, count) }] : [];
  });
}

/** A single rank updates whole parameters. */
export function wholeSlices(parameters: readonly Parameter[]): DenseSlice[] {
  return parameters.map(({ value }, parameter) => ({ parameter, start: 0, value }));
}
