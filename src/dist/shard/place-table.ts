// Which tables are divided over the ranks of a group, and which every rank holds whole.

export interface TableUse {
  readonly rows: number;
  readonly width: number;
  /** Every row is read in every step: a loss over all items. */
  readonly readWhole: boolean;
  /** Stored in 16 bits: the random numbers that round a row are named by its place in the whole table. */
  readonly rounded: boolean;
}

/** Smaller tables cost a rank less to hold than their messages. */
const SMALLEST_BYTES = 64 * 1024;

/** Whether a table is divided over `owners` ranks: looked up row by row, large enough, and a row for everybody. */
export function isDivided({ rows, width, readWhole, rounded }: TableUse, owners: number): boolean {
  return owners > 1 && !readWhole && !rounded && rows >= owners && rows * width * 4 >= SMALLEST_BYTES;
}
