// Which rows of a divided table are whose: row `id` belongs to owner `id mod count` and is row `id div count` there. Ids are
// ordered by popularity, so this deals the rows that everybody reads evenly over the owners.

export interface RowShard {
  readonly index: number;
  readonly count: number;
}

/** One owner of all rows. */
export const WHOLE: RowShard = { index: 0, count: 1 };

/** Rows of a table of `rows` that an owner has. */
export function ownedRows(rows: number, { index, count }: RowShard): number {
  return Math.max(0, Math.ceil((rows - index) / count));
}
