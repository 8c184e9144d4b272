// The reading side of a sequence store: every user's events, the split and the vocabularies of a prepared folder.
// Shards are read whole on first use while `residentBytes` lasts, which serves short sequences at memory speed;
// events of shards beyond it are read by range, from the page cache, without keeping them.

import { join } from 'node:path';
import { UserError } from '../../util/errors.js';
import { sha256File } from '../../util/hash.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import type { EventColumns, SequenceSource, Split } from '../sequence-source.js';
import { type ShardEntry, type StoreIndex, readStoreIndex } from './store-index.js';
import { Vocabulary } from './vocabulary.js';

export interface OpenOptions {
  /** Check every file against its checksum before use. */
  readonly verify?: boolean;
  /** Bytes of events to keep in memory. */
  readonly residentBytes?: number;
  /** Users are read in ascending order: the shard in use replaces the one before, whatever residentBytes says. */
  readonly sequential?: boolean;
}

/** One user's events, copied out of the store. */
export interface Sequence {
  readonly items: Int32Array;
  /** Undefined when the log had only an order. */
  readonly times: Float64Array | undefined;
  readonly actions: Int32Array | undefined;
}

const RESIDENT_BYTES = 2 ** 31;
/** Below this many events an element loop is faster than making a subarray and calling set (Node 20, Zen 3). */
const SHORT_COPY = 48;

export class SequenceStore implements SequenceSource {
  readonly folder: string;
  readonly index: StoreIndex;
  readonly users: number;
  readonly items: number;
  readonly events: number;
  readonly lengths: Int32Array;
  readonly split: Split;
  readonly fingerprint: string;
  readonly hasTime: boolean;
  readonly hasAction: boolean;
  readonly userVocabulary: Vocabulary;
  readonly itemVocabulary: Vocabulary;
  private readonly shards: readonly Shard[];
  private readonly shardOf: Uint32Array;
  /** First event of each user inside its shard. */
  private readonly start: Float64Array;
  private readonly sequential: boolean;
  private residentLeft: number;

  static open(folder: string, options: OpenOptions = {}): SequenceStore {
    const index = readStoreIndex(folder);
    if (options.verify) verifyChecksums(folder, index);
    return new SequenceStore(folder, index, options);
  }

  private constructor(folder: string, index: StoreIndex, options: OpenOptions) {
    this.folder = folder;
    this.index = index;
    this.users = index.users;
    this.items = index.items;
    this.events = index.events;
    this.fingerprint = index.split.fingerprint;
    this.hasTime = index.time.kind !== 'order';
    this.hasAction = index.action !== null;
    this.userVocabulary = new Vocabulary(folder, index.vocabulary.user);
    this.itemVocabulary = new Vocabulary(folder, index.vocabulary.item);
    this.residentLeft = options.residentBytes ?? RESIDENT_BYTES;
    this.sequential = options.sequential ?? false;

    const file = new SafetensorsFile(join(folder, index.split.file));
    this.lengths = file.read('length', 'I32');
    this.split = {
      kind: index.split.kind,
      trainEnd: file.read('train_end', 'I32'),
      validationEnd: file.read('validation_end', 'I32'),
    };
    file.close();

    this.shards = index.shards.map(entry => new Shard(folder, entry));
    this.shardOf = new Uint32Array(this.users);
    this.start = new Float64Array(this.users);
    index.shards.forEach((shard, s) => {
      let start = 0;
      for (let u = shard.firstUser; u < shard.firstUser + shard.users; u++) {
        this.shardOf[u] = s;
        this.start[u] = start;
        start += this.lengths[u] ?? 0;
      }
      if (start !== shard.events) {
        throw new UserError(
          'damaged-store',
          `${shard.file} should hold ${shard.events} events, ${index.split.file} counts ${start}`,
          'Prepare the log again.',
        );
      }
    });
  }

  length(user: number): number {
    const length = this.lengths[user];
    if (length === undefined) throw new RangeError(`user ${user} is outside 0..${this.users - 1}`);
    return length;
  }

  read(user: number, from: number, to: number, into: EventColumns, at: number): void {
    const length = this.length(user);
    if (from < 0 || from > to || to > length) {
      throw new RangeError(`user ${user} has events 0..${length}, asked for ${from}..${to}`);
    }
    const shard = this.shard(user);
    const first = (this.start[user] ?? 0) + from;
    const last = first + to - from;
    shard.readI32('item', first, last, into.item, at);
    if (into.time) {
      if (!this.hasTime)
        throw new UserError('no-times', `${this.folder} has an order and no times`, 'Train without time bias.');
      shard.readTime(first, last, into.time, at);
    }
    if (into.action) {
      if (!this.hasAction) {
        throw new UserError(
          'no-actions',
          `${this.folder} has no actions`,
          'Prepare it with --action, or do not ask for them.',
        );
      }
      shard.readI32('action', first, last, into.action, at);
    }
  }

  /** All events of a user, in memory of its own. */
  sequence(user: number): Sequence {
    const n = this.length(user);
    const items = new Int32Array(n);
    const times = this.hasTime ? new Float64Array(n) : undefined;
    const actions = this.hasAction ? new Int32Array(n) : undefined;
    this.read(user, 0, n, { item: items, ...(times && { time: times }), ...(actions && { action: actions }) }, 0);
    return { items, times, actions };
  }

  /** Dense id of the log's item id; undefined when it is unknown. */
  itemId(original: string | number | bigint): number | undefined {
    return this.itemVocabulary.dense(original);
  }

  originalItem(dense: number): string {
    return this.itemVocabulary.original(dense);
  }

  userId(original: string | number | bigint): number | undefined {
    return this.userVocabulary.dense(original);
  }

  originalUser(dense: number): string {
    return this.userVocabulary.original(dense);
  }

  close(): void {
    for (const shard of this.shards) shard.close();
  }

  private shard(user: number): Shard {
    const shard = this.shards[this.shardOf[user] ?? 0];
    if (!shard) throw new RangeError(`no shard holds user ${user}`);
    if (shard.resident) return shard;
    if (this.sequential) {
      for (const other of this.shards) other.close();
      shard.load(this.hasTime, this.hasAction);
    } else if (shard.bytes <= this.residentLeft) {
      shard.load(this.hasTime, this.hasAction);
      this.residentLeft -= shard.bytes;
    }
    return shard;
  }
}

class Shard {
  resident = false;
  /** Upper bound of what load() keeps. */
  readonly bytes: number;
  private readonly path: string;
  private opened: SafetensorsFile | undefined;
  private item: Int32Array = new Int32Array(0);
  private action: Int32Array = new Int32Array(0);
  private time: BigInt64Array = new BigInt64Array(0);
  /** The same memory as `time`, as low and high halves. */
  private timeHalves: Int32Array = new Int32Array(0);

  constructor(folder: string, entry: ShardEntry) {
    this.path = join(folder, entry.file);
    this.bytes = entry.events * 16;
  }

  load(hasTime: boolean, hasAction: boolean): void {
    this.item = this.file.read('item', 'I32');
    if (hasTime) {
      this.time = this.file.read('time', 'I64');
      this.timeHalves = new Int32Array(this.time.buffer);
    }
    if (hasAction) this.action = this.file.read('action', 'I32');
    this.resident = true;
  }

  readI32(name: 'item' | 'action', first: number, last: number, target: Int32Array, at: number): void {
    if (!this.resident) {
      this.file.readInto(name, 'I32', first, target.subarray(at, at + last - first));
      return;
    }
    const source = this[name];
    if (last - first > SHORT_COPY) target.set(source.subarray(first, last), at);
    else for (let i = first; i < last; i++) target[at + i - first] = source[i] ?? 0;
  }

  readTime(first: number, last: number, target: Float64Array | BigInt64Array, at: number): void {
    const n = last - first;
    let time = this.time;
    let timeHalves = this.timeHalves;
    let from = first;
    if (!this.resident) {
      time = new BigInt64Array(n);
      timeHalves = new Int32Array(time.buffer);
      from = 0;
      this.file.readInto('time', 'I64', first, time);
    }
    if (target instanceof BigInt64Array) target.set(time.subarray(from, from + n), at);
    else joinHalves(timeHalves, from, n, target, at);
  }

  close(): void {
    this.opened?.close();
    this.opened = undefined;
    this.resident = false;
    this.item = this.action = this.timeHalves = new Int32Array(0);
    this.time = new BigInt64Array(0);
  }

  private get file(): SafetensorsFile {
    this.opened ??= new SafetensorsFile(this.path);
    return this.opened;
  }
}

/** i64 as Float64 without making a BigInt of each: exact below 2^53. */
function joinHalves(halves: Int32Array, from: number, n: number, target: Float64Array, at: number): void {
  for (let i = 0; i < n; i++) {
    const low = halves[2 * (from + i)] ?? 0;
    const high = halves[2 * (from + i) + 1] ?? 0;
    target[at + i] = high * 2 ** 32 + (low >>> 0);
  }
}

function verifyChecksums(folder: string, index: StoreIndex): void {
  const files = [...index.shards, index.vocabulary.user, index.vocabulary.item, index.split, ...index.features];
  for (const { file, sha256 } of files) {
    const actual = sha256File(join(folder, file));
    if (actual !== sha256) {
      throw new UserError(
        'damaged-store',
        `${join(folder, file)} has checksum ${actual}, its index says ${sha256}`,
        'Prepare the log again, or copy the store again.',
      );
    }
  }
}
