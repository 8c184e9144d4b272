// Merges the events of a store and a newer log: first the lengths of all histories, then the shards.

import { createHash } from 'node:crypto';
import type { SequenceStore } from '../store/sequence-store.js';
import { type ColumnArray, planShards, ShardWriter } from '../store/shard-writer.js';
import { sealShard } from '../store/seal-shard.js';
import type { ActionEntry } from '../store/store-index.js';
import type { WrittenEvents } from '../prepare/write-events.js';
import type { MergedIds } from './merge-vocabulary.js';
import { mergeUser, type UserEvents } from './merge-user.js';
import { StoredEvents } from './stored-events.js';

export interface MergeInput {
  readonly base: SequenceStore;
  readonly newer: SequenceStore;
  readonly users: MergedIds;
  readonly items: MergedIds;
  readonly action: { readonly entry: ActionEntry | null; readonly ofNewer: Int32Array };
}

export class EventMerge {
  /** Events of each merged user. */
  readonly lengths: Int32Array;
  /** Events of each merged item. */
  readonly itemCounts: Float64Array;
  newEvents = 0;
  /** Time of the first new event; undefined when there is none or the log has no times. */
  firstTime: number | undefined;
  readonly #input: MergeInput;
  readonly #base: StoredEvents;
  readonly #newer: StoredEvents;
  /** User of the newer log by merged id, -1 for none. */
  readonly #newerUser: Int32Array;
  readonly #place: { item: number; time: number; action: number };

  constructor(input: MergeInput) {
    this.#input = input;
    this.#base = new StoredEvents(input.base);
    this.#newer = new StoredEvents(input.newer);
    const column = (name: string): number => this.#base.columns.findIndex(each => each.name === name);
    this.#place = { item: column('item'), time: column('time'), action: column('action') };
    this.#newerUser = new Int32Array(input.users.size).fill(-1);
    input.users.ofNewer.forEach((merged, user) => (this.#newerUser[merged] = user));
    this.lengths = new Int32Array(input.users.size);
    this.itemCounts = new Float64Array(input.items.size);
    for (let item = 0; item < input.items.known; item++) this.itemCounts[item] = input.base.itemVocabulary.count(item);
    for (let user = 0; user < this.lengths.length; user++) this.#count(user);
  }

  /** Writes and seals the shards. */
  write(folder: string): WrittenEvents {
    const columns = this.#base.columns;
    const planned = planShards(this.lengths);
    const hashes = [this.#place.item, this.#place.time].filter(place => place >= 0);
    const content = hashes.map(() => createHash('sha256'));
    const writer = new ShardWriter({
      folder,
      columns,
      shards: planned,
      lengths: this.lengths,
      onShard: written => hashes.forEach((place, h) => content[h]!.update(written[place]!)),
    });
    for (let user = 0; user < this.lengths.length; user++) {
      const users = new Int32Array(this.lengths[user]!).fill(user);
      if (!writer.add(users, this.#merged(user))) throw new Error(`the events of user ${user} do not fit their plan`);
    }
    const missing = this.#input.newer.index.columns;
    return {
      shards: planned.map(shard => sealShard({ kind: 'seal', folder, shard, dense: undefined })),
      columns: this.#input.base.index.columns.map((column, c) => ({
        ...column,
        missing: column.missing + missing[c]!.missing,
      })),
      action: this.#input.action.entry,
      content: content.map(hash => hash.digest('hex')),
    };
  }

  #count(user: number): void {
    const order = this.#order(user);
    this.lengths[user] = order?.length ?? this.#input.base.lengths[user]!;
    if (!order) return;
    const newer = this.#newerEvents(this.#newerUser[user]!);
    for (const place of order) {
      if (place >= 0) continue;
      this.newEvents++;
      this.itemCounts[newer.items[~place]!]!++;
      const time = newer.times && Number(newer.times[~place]);
      if (time !== undefined && !(time >= (this.firstTime ?? Infinity))) this.firstTime = time;
    }
  }

  /** Undefined if the newer log has no events of the user. */
  #order(user: number): Int32Array | undefined {
    const newer = this.#newerUser[user]!;
    return newer < 0 ? undefined : mergeUser(this.#baseEvents(user), this.#newerEvents(newer));
  }

  #baseEvents(user: number): UserEvents {
    const columns = user < this.#input.users.known ? this.#base.of(user) : undefined;
    return this.#named(columns ?? this.#base.columns.map(({ dtype }) => empty(dtype)));
  }

  /** In merged ids. */
  #newerEvents(user: number): UserEvents {
    return this.#named(this.#translated(user));
  }

  #translated(user: number): ColumnArray[] {
    const columns = this.#newer.of(user);
    const { item, action } = this.#place;
    const { items, action: actions } = this.#input;
    columns[item] = ints(columns[item]).map(id => items.ofNewer[id]!);
    if (action >= 0 && actions.entry?.kind === 'label') {
      columns[action] = ints(columns[action]).map(label => actions.ofNewer[label]!);
    }
    return columns;
  }

  #named(columns: readonly ColumnArray[]): UserEvents {
    const { item, time, action } = this.#place;
    return {
      items: ints(columns[item]),
      times: time < 0 ? undefined : longs(columns[time]),
      actions: action < 0 ? undefined : ints(columns[action]),
    };
  }

  #merged(user: number): ColumnArray[] {
    const order = this.#order(user);
    if (!order) return this.#base.of(user);
    const base = user < this.#input.users.known ? this.#base.of(user) : undefined;
    const newer = this.#translated(this.#newerUser[user]!);
    return this.#base.columns.map(({ dtype }, c) => pick(order, { base: base?.[c] ?? empty(dtype), newer: newer[c]! }));
  }
}

function empty(dtype: 'I32' | 'I64' | 'F32' | 'U8'): ColumnArray {
  if (dtype === 'I64') return new BigInt64Array(0);
  return dtype === 'I32' ? new Int32Array(0) : dtype === 'F32' ? new Float32Array(0) : new Uint8Array(0);
}

function pick(order: Int32Array, { base, newer }: { base: ColumnArray; newer: ColumnArray }): ColumnArray {
  if (base instanceof BigInt64Array) {
    const others = longs(newer);
    return BigInt64Array.from(order, place => (place >= 0 ? base[place]! : others[~place]!));
  }
  if (newer instanceof BigInt64Array) throw new Error('columns of one name have different types');
  const at = (place: number): number => (place >= 0 ? base[place]! : newer[~place]!);
  if (base instanceof Int32Array) return Int32Array.from(order, at);
  return base instanceof Float32Array ? Float32Array.from(order, at) : Uint8Array.from(order, at);
}

function ints(column: ColumnArray | undefined): Int32Array {
  if (column instanceof Int32Array) return column;
  throw new Error('items and actions are 32-bit integers');
}

function longs(column: ColumnArray | undefined): BigInt64Array {
  if (column instanceof BigInt64Array) return column;
  throw new Error('times are 64-bit integers');
}
