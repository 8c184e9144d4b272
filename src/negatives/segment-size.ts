// Whether rows of negatives are fetched into segments, and the smallest segment for which the loss never waits.
//
// P positions (tokens, or groups that share), R draws each, V rows of D numbers.

/** Tables of up to this many floats are read in place in f32: they fit the cache, and the losses copy them anyway. */
const SMALL_TABLE = 2 ** 21;

export interface Fetching {
  readonly storage: 'f32' | 'f16';
  /** Positions per segment; 0 for all at once. */
  readonly segment: number;
}

/** Otherwise the loss reads rows in place. */
export function fetchesBeside({ storage, segment }: Fetching, table: { rows: number; width: number }): boolean {
  const small = table.rows * Math.ceil(table.width / 8) * 8 <= SMALL_TABLE;
  return storage !== 'f32' || (segment > 0 && !small);
}

export interface Drawn {
  readonly positions: number; // P
  readonly draws: number; // R
  readonly rows: number; // V
}

/** Positions of a segment of `size`: all of them if `size` is 0, or if all rows fit into two segments. */
export function positionsPerSegment({ positions, draws, rows }: Drawn, size: number): number {
  return size === 0 || rows <= 2 * size * draws ? positions : Math.min(size, positions);
}

/**
 * Two segments are fetched while the encoder runs. Later ones are fetched while the loss computes with the previous segment,
 * and one thread fetches more slowly than all threads compute, so two segments must suffice.
 */
export function leastHiddenSegment({ positions, draws, rows }: Drawn): number {
  return Math.ceil(Math.min(positions / 2, rows / (2 * draws)));
}
