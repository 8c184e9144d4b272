// Which tables are sharded over the ranks of a group, and which are replicated.

export interface TableUse {
  readonly rows: number;
  readonly width: number;
  /** Every row is read in every step: a loss over all items. */
  readonly readWhole: boolean;
  /** Stored in 16 bits: the random numbers for rounding a row are keyed by its index in the whole table. */
  readonly rounded: boolean;
}

/** Smaller tables are cheaper to replicate than to exchange. */
const SMALLEST_BYTES = 64 * 1024;

/** Whether to shard a table over `owners` ranks: looked up by row, large enough, at least one row per rank. */
export function isDivided({ rows, width, readWhole, rounded }: TableUse, owners: number): boolean {
  return owners > 1 && !readWhole && !rounded && rows >= owners && rows * width * 4 >= SMALLEST_BYTES;
}
