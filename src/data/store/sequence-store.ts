// Reads a sequence store: every user's events, the split and the vocabularies of a prepared folder.
// Shards are memory-mapped on first use, so events are copied directly from the page cache, and a store larger than
// memory is read like a small one.

import { join } from 'node:path';
import { mapFile } from '../../native/device.js';
import { UserError } from '../../util/errors.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import type { EventColumns, SequenceSource, Split } from '../sequence-source.js';
import { copyInts, copyTimes } from './copy-columns.js';
import { damagedStore } from './damaged-store.js';
import { readStoreIndex } from './read-index.js';
import { type ShardEntry, type StoreIndex, TICKS_PER_DAY, contentHash } from './store-index.js';
import { verifyStore } from './verify-store.js';
import { Vocabulary } from './vocabulary.js';

/** One user's events, copied out of the store. */
export interface Sequence {
  readonly items: Int32Array;
  /** Undefined if the log has only an order. */
  readonly times: Float64Array | undefined;
  readonly actions: Int32Array | undefined;
}

export class SequenceStore implements SequenceSource {
  readonly folder: string;
  readonly index: StoreIndex;
  readonly users: number;
  readonly items: number;
  readonly events: number;
  readonly lengths: Int32Array;
  readonly split: Split;
  readonly fingerprint: string;
  /** SHA-256 of everything a model can see, including actions and features: see contentHash. */
  readonly content: string;
  readonly hasTime: boolean;
  readonly ticksPerDay?: number;
  readonly hasAction: boolean;
  readonly userVocabulary: Vocabulary;
  readonly itemVocabulary: Vocabulary;
  private readonly shards: (Shard | undefined)[];
  private readonly shardOf: Uint32Array;
  /** First event of each user inside its shard. */
  private readonly start: Int32Array;

  /** Checks index, sizes and layout, which is fast; the bytes are checked by verify(). */
  static open(folder: string): SequenceStore {
    return new SequenceStore(folder, readStoreIndex(folder));
  }

  private constructor(folder: string, index: StoreIndex) {
    this.folder = folder;
    this.index = index;
    this.users = index.users;
    this.items = index.items;
    this.events = index.events;
    this.fingerprint = index.split.fingerprint;
    this.content = contentHash(index);
    const { kind } = index.time;
    this.hasTime = kind !== 'order';
    if (kind !== 'order') this.ticksPerDay = TICKS_PER_DAY[kind];
    this.hasAction = index.action !== null;
    this.userVocabulary = new Vocabulary(folder, index.vocabulary.user);
    this.itemVocabulary = new Vocabulary(folder, index.vocabulary.item);
    const { lengths, split } = readSplit(folder, index);
    this.lengths = lengths;
    this.split = split;

    this.shards = index.shards.map(() => undefined);
    this.shardOf = new Uint32Array(this.users);
    this.start = new Int32Array(this.users);
    index.shards.forEach((shard, s) => {
      let start = 0;
      for (let u = shard.firstUser; u < shard.firstUser + shard.users; u++) {
        this.shardOf[u] = s;
        this.start[u] = start;
        start += this.lengths[u] ?? 0;
      }
      if (start !== shard.events) {
        throw damagedStore(
          join(folder, shard.file),
          `should hold ${shard.events} events, ${index.split.file} counts ${start}`,
        );
      }
    });
  }

  /**
   * Compares every file with its checksum and recomputes the fingerprint; rejects if something is wrong. Works in slices, so that
   * it can run during training; results from a store that turns out damaged must be discarded.
   */
  verify(signal?: AbortSignal): Promise<void> {
    return verifyStore(this, signal);
  }

  itemCounts(part: 'validation' | 'test'): Int32Array | undefined {
    const { counts: entry, vocabulary } = this.index;
    if (!entry) return undefined; // a store of version 1
    const path = join(this.folder, entry.file);
    const file = new SafetensorsFile(path);
    const stored = file.read(part === 'validation' ? 'train' : 'train_validation', 'I32');
    file.close();
    if (stored.length !== vocabulary.item.size) {
      throw damagedStore(path, `counts ${stored.length} items, the vocabulary holds ${vocabulary.item.size}`);
    }
    const counts = new Int32Array(this.items);
    counts.set(stored);
    return counts;
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
    const shard = this.shard(this.shardOf[user] ?? 0);
    const first = (this.start[user] ?? 0) + from;
    const n = to - from;
    copyInts(shard.item, first, n, into.item, at);
    if (into.time) {
      if (!shard.time)
        throw new UserError('no-times', `${this.folder} has an order and no times`, 'Train without time bias.');
      copyTimes(shard.time, first, n, into.time, at);
    }
    if (into.action) {
      if (!shard.action) {
        throw new UserError(
          'no-actions',
          `${this.folder} has no actions`,
          'Prepare it with --action, or train without actions.',
        );
      }
      copyInts(shard.action, first, n, into.action, at);
    }
  }

  /** A copy of all events of a user. */
  sequence(user: number): Sequence {
    const n = this.length(user);
    const items = new Int32Array(n);
    const times = this.hasTime ? new Float64Array(n) : undefined;
    const actions = this.hasAction ? new Int32Array(n) : undefined;
    this.read(user, 0, n, { item: items, ...(times && { time: times }), ...(actions && { action: actions }) }, 0);
    return { items, times, actions };
  }

  /** Dense id of an item id of the log; undefined if unknown. */
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

  private shard(s: number): Shard {
    const mapped = this.shards[s];
    if (mapped) return mapped;
    const entry = this.index.shards[s];
    if (!entry) throw new RangeError(`there is no shard ${s}`);
    const shard = mapShard(this.folder, entry, this);
    this.shards[s] = shard;
    return shard;
  }
}

function readSplit(folder: string, { users, split: entry }: StoreIndex): { lengths: Int32Array; split: Split } {
  const path = join(folder, entry.file);
  const file = new SafetensorsFile(path);
  try {
    const lengths = file.read('length', 'I32');
    const trainEnd = file.read('train_end', 'I32');
    const validationEnd = file.read('validation_end', 'I32');
    const totals = { train: 0, validation: 0, test: 0 };
    for (let u = 0; u < users; u++) {
      const [train, validation, length] = [trainEnd[u] ?? -1, validationEnd[u] ?? -1, lengths[u] ?? -1];
      if (train < 0 || train > validation || validation > length) {
        throw damagedStore(path, `cuts user ${u} at ${train} and ${validation} of ${length} events`);
      }
      totals.train += train;
      totals.validation += validation - train;
      totals.test += length - validation;
    }
    const { train, validation, test } = totals;
    const agrees = train === entry.train && validation === entry.validation && test === entry.test;
    if (lengths.length !== users || trainEnd.length !== users || validationEnd.length !== users || !agrees) {
      throw damagedStore(path, `does not hold the split of ${users} users that the index describes`);
    }
    return { lengths, split: { kind: entry.kind, trainEnd, validationEnd } };
  } finally {
    file.close();
  }
}

/** Views of a mapped shard. */
interface Shard {
  readonly item: Int32Array;
  readonly action: Int32Array | undefined;
  /** Low and high halves of the i64 times. */
  readonly time: Int32Array | undefined;
}

function mapShard(
  folder: string,
  { file: name, events }: ShardEntry,
  has: { hasTime: boolean; hasAction: boolean },
): Shard {
  const path = join(folder, name);
  const file = new SafetensorsFile(path);
  try {
    const buffer = mapFile(path);
    const view = (column: string, dtype: 'I32' | 'I64'): Int32Array => {
      const { offset, bytes } = file.place(column, dtype);
      if (bytes !== events * (dtype === 'I64' ? 8 : 4) || offset + bytes > buffer.byteLength) {
        throw damagedStore(path, `has ${bytes} bytes of '${column}' for ${events} events`);
      }
      return new Int32Array(buffer, offset, bytes / 4);
    };
    return {
      item: view('item', 'I32'),
      action: has.hasAction ? view('action', 'I32') : undefined,
      time: has.hasTime ? view('time', 'I64') : undefined,
    };
  } finally {
    file.close();
  }
}
