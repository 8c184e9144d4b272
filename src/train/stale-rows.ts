// What reading ahead of the updates needs to remember. With staleness s the rows of step t are those after update
// t - 1 - s: they are fetched before the updates in between are applied. Remembered are, for each of the last s updates, the
// rows that it changed as they were before it. From these comes which rows were read stale, and what a checkpoint needs:
// rows fetched after a resume are answered as they would have been fetched then. `exact` fetches ahead by one step too,
// and fetches again what the update then changed: it needs to know which rows those are, not what they were.
//
// U rows of a list, D width.

import type { Config } from '../config/schema.js';
import type { StreamName } from '../native/call.js';
import type { Device } from '../native/device.js';
import type { RowList } from '../ops/row-list.js';
import { stageRows } from '../ops/staged-rows.js';
import type { Table } from '../ops/table.js';
import { isF32, type Tensor } from '../tensor/tensor.js';

/** One update: the rows that it changed, by row here. */
interface Change {
  readonly step: number;
  /** Ascending, then -1. */
  readonly ids: Tensor<'i32'>; // [U]
  /** As they were before; not kept when nobody asks for them. */
  readonly before: Tensor<'f32'> | undefined; // [U, D]
}

/** The rows that an update changed, as they were before it. */
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

  /** `stream`: where updates of the table are applied. */
  constructor(device: Device, table: Table, staleness: Config['staleness'], stream: StreamName) {
    this.#device = device;
    this.#table = table;
    this.#stream = stream;
    this.exact = staleness === 'exact';
    this.ahead = staleness === 'exact' ? 1 : staleness;
  }

  /** To be called before an update is applied; what it returns, once the update is enqueued. */
  remember(step: number, { ids }: RowList): () => void {
    const value = this.#table.value;
    if (!isF32(value)) throw new Error(`table ${this.#table.name} is ${value.dtype}: stale rows are f32`);
    const before = this.exact ? undefined : stageRows(this.#device, { from: value, ids, dtype: 'f32' }, this.#stream);
    return () => this.#push({ step, ids, before });
  }

  /** The rows of a step as they have to be read, where updates beyond have been applied; the last list counts. */
  before(step: number): RowList[] {
    const unseen = this.#changes.filter(change => !this.exact && change.step >= step - this.ahead);
    return unseen.toReversed().map(({ ids, before }) => ({ ids, rows: before! }));
  }

  /** What the updates changed that a step, fetched ahead, has not seen. */
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
