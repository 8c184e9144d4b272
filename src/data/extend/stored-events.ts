// All columns of a store's events by user, mapped into memory: views, valid as long as this object.

import { join } from 'node:path';
import { mapFile } from '../../native/device.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import type { SequenceStore } from '../store/sequence-store.js';
import type { Column, ColumnArray } from '../store/shard-writer.js';
import type { ColumnDtype, ShardEntry } from '../store/store-index.js';

const VIEW: Record<ColumnDtype, (buffer: ArrayBuffer, offset: number, count: number) => ColumnArray> = {
  I32: (buffer, offset, count) => new Int32Array(buffer, offset, count),
  I64: (buffer, offset, count) => new BigInt64Array(buffer, offset, count),
  F32: (buffer, offset, count) => new Float32Array(buffer, offset, count),
  U8: (buffer, offset, count) => new Uint8Array(buffer, offset, count),
};

export class StoredEvents {
  readonly columns: readonly Column[];
  readonly #store: SequenceStore;
  readonly #shards: (readonly ColumnArray[] | undefined)[];
  readonly #shardOf: Int32Array;
  readonly #start: Int32Array;

  constructor(store: SequenceStore) {
    this.#store = store;
    this.columns = store.index.columns.map(({ name, dtype }) => ({ name, dtype }));
    this.#shards = store.index.shards.map(() => undefined);
    this.#shardOf = new Int32Array(store.users);
    this.#start = new Int32Array(store.users);
    store.index.shards.forEach(({ firstUser, users }, s) => {
      for (let user = firstUser, start = 0; user < firstUser + users; start += store.lengths[user++]!) {
        this.#shardOf[user] = s;
        this.#start[user] = start;
      }
    });
  }

  /** The columns of a user, in their order. */
  of(user: number): ColumnArray[] {
    const s = this.#shardOf[user]!;
    const start = this.#start[user]!;
    const mapped = (this.#shards[s] ??= this.#map(this.#store.index.shards[s]!));
    return mapped.map(column => column.subarray(start, start + this.#store.lengths[user]!));
  }

  #map({ file: name, events }: ShardEntry): ColumnArray[] {
    const path = join(this.#store.folder, name);
    const file = new SafetensorsFile(path);
    try {
      const buffer = mapFile(path);
      return this.columns.map(({ name: column, dtype }) =>
        VIEW[dtype](buffer, file.place(column, dtype).offset, events),
      );
    } finally {
      file.close();
    }
  }
}
