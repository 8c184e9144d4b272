// Row ownership of a sharded table: row `id` belongs to owner `id mod count`, as its local row `id div count`. Ids are ordered
// by popularity, so this distributes frequently read rows evenly over the owners.

export interface RowShard {
  readonly index: number;
  readonly count: number;
}

/** One owner of all rows. */
export const WHOLE: RowShard = { index: 0, count: 1 };

/** Number of rows that an owner has, of a table of `rows`. */
export function ownedRows(rows: number, { index, count }: RowShard): number {
  return Math.max(0, Math.ceil((rows - index) / count));
}
