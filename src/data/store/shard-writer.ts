// Cuts a stream of events, sorted by user, into shards of whole users: one safetensors file in jagged layout each.
// A shard closes at the first new user after it holds `capacity` events, so memory is bounded by that and the longest user.

import { type Hash, createHash } from 'node:crypto';
import { join } from 'node:path';
import { sha256File } from '../../util/hash.js';
import { type TensorArray, type TensorSpec, SafetensorsWriter } from '../../util/safetensors.js';
import type { ColumnDtype, ShardEntry } from './store-index.js';

export type ColumnArray = TensorArray<ColumnDtype>;
export interface Column {
  readonly name: string;
  readonly dtype: ColumnDtype;
}

/** 2^21 events are 32 MB with item, time and action: one sequential write, and small beside the sort's memory. */
const CAPACITY = 1 << 21;

const ALLOCATE: { [T in ColumnDtype]: (length: number) => TensorArray<T> } = {
  I32: length => new Int32Array(length),
  I64: length => new BigInt64Array(length),
  F32: length => new Float32Array(length),
  U8: length => new Uint8Array(length),
};

export class ShardWriter {
  /** Lengths of all users seen so far, in dense order. */
  readonly lengths: number[] = [];
  readonly shards: ShardEntry[] = [];
  private readonly folder: string;
  private readonly columns: readonly Column[];
  private readonly capacity: number;
  private readonly hashes: Hash[];
  private buffers: ColumnArray[];
  private held = 0;
  private firstUser = 0;

  constructor(folder: string, columns: readonly Column[], capacity = CAPACITY) {
    this.folder = folder;
    this.columns = columns;
    this.capacity = capacity;
    this.buffers = columns.map(({ dtype }) => ALLOCATE[dtype](capacity));
    this.hashes = columns.map(() => createHash('sha256'));
  }

  /** Add events in order. `users` is ascending, without gaps, over all calls; `values[c]` belongs to column c. */
  add(users: Int32Array, values: readonly ColumnArray[]): void {
    const n = users.length;
    for (let from = 0; from < n; ) {
      const user = users[from] ?? -1;
      let to = from + 1;
      while (to < n && users[to] === user) to++;
      this.addRun(user, from, to, values);
      from = to;
    }
  }

  /** Write the last shard. Returns the SHA-256 of each column's whole content, shards put together. */
  finish(): string[] {
    if (this.held > 0) this.flush();
    return this.hashes.map(hash => hash.digest('hex'));
  }

  private addRun(user: number, from: number, to: number, values: readonly ColumnArray[]): void {
    if (user === this.lengths.length) {
      if (this.held >= this.capacity) this.flush();
      this.lengths.push(0);
    } else if (user !== this.lengths.length - 1) {
      throw new Error(`events arrive out of order: user ${user} after user ${this.lengths.length - 1}`);
    }
    const count = to - from;
    this.reserve(this.held + count);
    for (let c = 0; c < this.buffers.length; c++) copy(values[c], from, to, this.buffers[c], this.held);
    this.held += count;
    this.lengths[user] = (this.lengths[user] ?? 0) + count;
  }

  private reserve(events: number): void {
    const room = this.buffers[0]?.length ?? 0;
    if (events <= room) return;
    this.buffers = this.columns.map(({ dtype }, c) => {
      const larger = ALLOCATE[dtype](Math.max(events, room + (room >> 1)));
      copy(this.buffers[c], 0, this.held, larger, 0);
      return larger;
    });
  }

  private flush(): void {
    const users = this.lengths.length - this.firstUser;
    const offsets = new BigInt64Array(users + 1);
    let end = 0;
    for (let u = 0; u < users; u++) offsets[u + 1] = BigInt((end += this.lengths[this.firstUser + u] ?? 0));

    const file = `events-${String(this.shards.length).padStart(5, '0')}.safetensors`;
    const specs: Record<string, TensorSpec> = { offsets: { dtype: 'I64', shape: [users + 1] } };
    for (const { name, dtype } of this.columns) specs[name] = { dtype, shape: [this.held] };
    const writer = new SafetensorsWriter(join(this.folder, file), specs);
    writer.append('offsets', offsets);
    this.columns.forEach(({ name }, c) => {
      const content = this.buffers[c]?.subarray(0, this.held) ?? new Uint8Array(0);
      writer.append(name, content);
      this.hashes[c]?.update(content);
    });
    writer.close();
    const sha256 = sha256File(join(this.folder, file));
    this.shards.push({ file, sha256, firstUser: this.firstUser, users, events: this.held });
    this.firstUser += users;
    this.held = 0;
  }
}

function copy(
  source: ColumnArray | undefined,
  from: number,
  to: number,
  target: ColumnArray | undefined,
  at: number,
): void {
  if (source instanceof BigInt64Array && target instanceof BigInt64Array) target.set(source.subarray(from, to), at);
  else if (source instanceof Int32Array && target instanceof Int32Array) target.set(source.subarray(from, to), at);
  else if (source instanceof Float32Array && target instanceof Float32Array) target.set(source.subarray(from, to), at);
  else if (source instanceof Uint8Array && target instanceof Uint8Array) target.set(source.subarray(from, to), at);
  else throw new Error('a column does not have the type that was announced for it');
}
