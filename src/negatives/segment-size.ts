// Whether rows of negatives are fetched beside the table, and from which size of segments on the loss never waits for them.
//
// P positions (tokens, or groups that share), R draws each, V rows of D numbers.

/** Floats of a table that is not fetched from in f32: it fits the cache, and the losses copy it themselves. */
const SMALL_TABLE = 2 ** 21;

export interface Fetching {
  readonly storage: 'f32' | 'f16';
  /** Positions of a segment; 0 for all at once. */
  readonly segment: number;
}

/** Otherwise the loss reads rows where they are. */
export function fetchesBeside({ storage, segment }: Fetching, table: { rows: number; width: number }): boolean {
  const small = table.rows * Math.ceil(table.width / 8) * 8 <= SMALL_TABLE;
  return storage !== 'f32' || (segment > 0 && !small);
}

export interface Drawn {
  readonly positions: number; // P
  readonly draws: number; // R
  readonly rows: number; // V
}

/**
 * Two segments are fetched while the encoder runs. Those after them are fetched while the loss computes with the one before,
 * which takes a thread longer than computing takes all of them: nothing may be left for then.
 */
export function leastHiddenSegment({ positions, draws, rows }: Drawn): number {
  return Math.ceil(Math.min(positions / 2, rows / (2 * draws)));
}
