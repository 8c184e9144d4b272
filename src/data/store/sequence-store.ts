// The reading side of a sequence store: every user's events, the split and the vocabularies of a prepared folder.
// Shards are mapped into memory on first use, so events are copied straight from the page cache, and a store larger than
// memory is read like a small one.

import { join } from 'node:path';
import { mapFile } from '../../native/device.js';
import { UserError } from '../../util/errors.js';
import { sha256File } from '../../util/hash.js';
import { SafetensorsFile } from '../../util/safetensors.js';
import type { EventColumns, SequenceSource, Split } from '../sequence-source.js';
import { copyInts, copyTimes } from './copy-columns.js';
import { type StoreIndex, readStoreIndex } from './store-index.js';
import { Vocabulary } from './vocabulary.js';

export interface OpenOptions {
  /** Check every file against its checksum before use. */
  readonly verify?: boolean;
}

/** One user's events, copied out of the store. */
export interface Sequence {
  readonly items: Int32Array;
  /** Undefined when the log had only an order. */
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
  readonly hasTime: boolean;
  readonly hasAction: boolean;
  readonly userVocabulary: Vocabulary;
  readonly itemVocabulary: Vocabulary;
  private readonly shards: (Shard | undefined)[];
  private readonly shardOf: Uint32Array;
  /** First event of each user inside its shard. */
  private readonly start: Int32Array;

  static open(folder: string, options: OpenOptions = {}): SequenceStore {
    const index = readStoreIndex(folder);
    if (options.verify) verifyChecksums(folder, index);
    return new SequenceStore(folder, index);
  }

  private constructor(folder: string, index: StoreIndex) {
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

    const file = new SafetensorsFile(join(folder, index.split.file));
    this.lengths = file.read('length', 'I32');
    this.split = {
      kind: index.split.kind,
      trainEnd: file.read('train_end', 'I32'),
      validationEnd: file.read('validation_end', 'I32'),
    };
    file.close();

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
          'Prepare it with --action, or do not ask for them.',
        );
      }
      copyInts(shard.action, first, n, into.action, at);
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

  private shard(s: number): Shard {
    const mapped = this.shards[s];
    if (mapped) return mapped;
    const shard = mapShard(join(this.folder, this.index.shards[s]?.file ?? ''), this);
    this.shards[s] = shard;
    return shard;
  }
}

/** Views of a mapped shard. */
interface Shard {
  readonly item: Int32Array;
  readonly action: Int32Array | undefined;
  /** Low and high halves of the i64 times. */
  readonly time: Int32Array | undefined;
}

function mapShard(path: string, { hasTime, hasAction }: { hasTime: boolean; hasAction: boolean }): Shard {
  const file = new SafetensorsFile(path);
  const buffer = mapFile(path);
  const view = (name: string, dtype: 'I32' | 'I64'): Int32Array => {
    const { offset, bytes } = file.place(name, dtype);
    return new Int32Array(buffer, offset, bytes / 4);
  };
  const shard = {
    item: view('item', 'I32'),
    action: hasAction ? view('action', 'I32') : undefined,
    time: hasTime ? view('time', 'I64') : undefined,
  };
  file.close();
  return shard;
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
