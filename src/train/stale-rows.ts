// Bookkeeping for rows that are fetched ahead of updates. With staleness s, step t reads rows as of update t - 1 - s: they
// are fetched before the updates in between are applied. For each of the last s updates the rows that it changed are kept
// with their previous values. They tell which rows were read stale, and they go into checkpoints, so that rows fetched after
// a resume are the same as without the interruption. `exact` also fetches one step ahead, and fetches again the rows that
// the update changed: it needs their ids, not their previous values.
//
// U rows of a list, D width.

import type { Config } from '../config/schema.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { RowList } from '../ops/row-list.js';
import { stageRows } from '../ops/staged-rows.js';
import type { Table } from '../ops/table.js';
import { isF32, type Tensor } from '../tensor/tensor.js';

/** One update: the rows that it changed, by local row. */
interface Change {
  readonly step: number;
  /** Ascending, padded with -1. */
  readonly ids: Tensor<'i32'>; // [U]
  /** Previous values; not kept if not needed. */
  readonly before: Tensor<'f32'> | undefined; // [U, D]
}

/** The rows that an update changed, with their previous values. */
export interface OldRows {
  readonly step: number;
  readonly list: RowList;
}

export class StaleRows {
  /** How many steps ahead rows are fetched. */
  readonly ahead: number;
  /** Whether changed rows are fetched again. */
  readonly exact: boolean;
  readonly #device: Device;
  readonly #table: Table;
  readonly #stream: StreamName;
  /** The last `ahead` updates, oldest first. */
  readonly #changes: Change[] = [];

  /** `stream`: the stream on which the table is updated. */
  constructor(device: Device, table: Table, staleness: Config['staleness'], stream: StreamName) {
    this.#device = device;
    this.#table = table;
    this.#stream = stream;
    this.exact = staleness === 'exact';
    this.ahead = staleness === 'exact' ? 1 : staleness;
  }

  /** Call before an update is applied. Takes ownership of the ids. */
  remember(step: number, { ids }: RowList): void {
    const value = this.#table.value;
    if (!isF32(value)) throw new Error(`table ${this.#table.name} is ${value.dtype}: stale rows are f32`);
    const before = this.exact ? undefined : stageRows(this.#device, { from: value, ids, dtype: 'f32' }, this.#stream);
    this.#push({ step, ids, before });
  }

  /** Previous values for a step whose rows are older than the table; where lists overlap, the last wins. */
  before(step: number): RowList[] {
    const unseen = this.#changes.filter(change => !this.exact && change.step >= step - this.ahead);
    return unseen.toReversed().map(({ ids, before }) => ({ ids, rows: before! }));
  }

  /** Rows changed by updates that a step, fetched ahead, has not seen. */
  changed(step: number): Tensor<'i32'>[] {
    return this.#changes.filter(change => change.step >= step - this.ahead).map(({ ids }) => ids);
  }

  /** For a checkpoint. */
  get old(): OldRows[] {
    if (this.exact) return [];
    return this.#changes.map(({ step, ids, before }) => ({ step, list: { ids, rows: before! } }));
  }

  /** From a checkpoint. */
  restore(old: readonly OldRows[]): void {
    for (const { step, list } of old) this.#push({ step, ids: list.ids, before: list.rows });
  }

  #push(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length <= this.ahead) return;
    const { ids, before } = this.#changes.shift()!;
    ids.dispose();
    before?.dispose();
  }
}
