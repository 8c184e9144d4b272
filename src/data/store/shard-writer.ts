// Shards: consecutive users in jagged layout, one safetensors file each. Their boundaries depend only on the users' lengths
// (planShards), so that runs of shards can be written independently; ShardWriter fills one such run from events sorted by
// user, with one shard in memory. A shard is part of the store once it is sealed (seal-shard.ts).

import { join } from 'node:path';
import { type TensorArray, type TensorSpec, SafetensorsWriter } from '../../util/safetensors.js';
import type { ColumnDtype, ShardEntry } from './store-index.js';

export type ColumnArray = TensorArray<ColumnDtype>;
export interface Column {
  readonly name: string;
  readonly dtype: ColumnDtype;
}

export type ShardPlan = Omit<ShardEntry, 'sha256' | 'bytes'>;

/** 2^21 events are 32 MB with item, time and action: one sequential write, small compared to the sort's memory. */
const CAPACITY = 1 << 21;

const ALLOCATE: { [T in ColumnDtype]: (length: number) => TensorArray<T> } = {
  I32: length => new Int32Array(length),
  I64: length => new BigInt64Array(length),
  F32: length => new Float32Array(length),
  U8: length => new Uint8Array(length),
};

/** A shard ends at the first new user after `capacity` events. */
export function planShards(lengths: Int32Array, capacity = CAPACITY): ShardPlan[] {
  const shards: ShardPlan[] = [];
  let firstUser = 0;
  let events = 0;
  for (let user = 0; user < lengths.length; user++) {
    events += lengths[user] ?? 0;
    if (events < capacity && user < lengths.length - 1) continue;
    const file = `events-${String(shards.length).padStart(5, '0')}.safetensors`;
    shards.push({ file, firstUser, users: user + 1 - firstUser, events });
    firstUser = user + 1;
    events = 0;
  }
  return shards;
}

export interface ShardWriterOptions {
  readonly folder: string;
  readonly columns: readonly Column[];
  /** Consecutive shards of the plan. */
  readonly shards: readonly ShardPlan[];
  /** Lengths of all users of the store. */
  readonly lengths: Int32Array;
  /** Called with the columns of each written shard; their memory is reused for the next one. */
  readonly onShard?: (columns: readonly ColumnArray[]) => void;
}

export class ShardWriter {
  private readonly options: ShardWriterOptions;
  private readonly buffers: ColumnArray[];
  private shard = 0;
  private user: number;
  private buffered = 0;
  /** Events buffered once the current user is complete. */
  private userEnd: number;

  constructor(options: ShardWriterOptions) {
    const { columns, shards, lengths } = options;
    this.options = options;
    const room = shards.reduce((most, { events }) => Math.max(most, events), 0);
    this.buffers = columns.map(({ dtype }) => ALLOCATE[dtype](room));
    this.user = shards[0]?.firstUser ?? 0;
    this.userEnd = lengths[this.user] ?? 0;
  }

  /** Number of written shards. */
  get complete(): number {
    return this.shard;
  }

  /**
   * Adds events; `values[c]` belongs to column c. Across calls `users` must ascend, each with all of its events: returns false at
   * the first violation, after which nothing may be added.
   */
  add(users: Int32Array, values: readonly ColumnArray[]): boolean {
    const n = users.length;
    for (let from = 0; from < n; ) {
      const user = users[from] ?? -1;
      let to = from + 1;
      while (to < n && users[to] === user) to++;
      if (!this.addRun(user, from, to, values)) return false;
      from = to;
    }
    return true;
  }

  private addRun(user: number, from: number, to: number, values: readonly ColumnArray[]): boolean {
    const end = this.buffered + to - from;
    if (user !== this.user || end > this.userEnd) return false;
    for (let c = 0; c < this.buffers.length; c++) copy(values[c], from, to, this.buffers[c], this.buffered);
    this.buffered = end;
    if (end < this.userEnd) return true;
    if (end === this.options.shards[this.shard]?.events) this.flush();
    this.user++;
    this.userEnd = this.buffered + (this.options.lengths[this.user] ?? 0);
    return true;
  }

  private flush(): void {
    const { folder, columns, shards, lengths } = this.options;
    const plan = shards[this.shard++];
    if (!plan) throw new Error('more events than the shards were planned for');
    const offsets = new BigInt64Array(plan.users + 1);
    let end = 0;
    for (let u = 0; u < plan.users; u++) offsets[u + 1] = BigInt((end += lengths[plan.firstUser + u] ?? 0));

    const specs: Record<string, TensorSpec> = { offsets: { dtype: 'I64', shape: [plan.users + 1] } };
    for (const { name, dtype } of columns) specs[name] = { dtype, shape: [this.buffered] };
    const writer = new SafetensorsWriter(join(folder, plan.file), specs);
    writer.append('offsets', offsets);
    const filled = this.buffers.map(buffer => buffer.subarray(0, this.buffered));
    columns.forEach(({ name }, c) => writer.append(name, filled[c] ?? new Uint8Array(0)));
    writer.close({ flush: false }); // sealing does
    this.options.onShard?.(filled);
    this.buffered = 0;
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
  else throw new Error('a column does not have its declared type');
}
