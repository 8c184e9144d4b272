// Completes a store whose events are written: split, leakage check on the stored data, fingerprint, index last.

import { join } from 'node:path';
import { SafetensorsFile, writeSafetensors } from '../../util/safetensors.js';
import type { Split } from '../sequence-source.js';
import { fileEntry } from '../store/file-entry.js';
import { copyTimes } from '../store/copy-columns.js';
import { type SplitRule, checkLeakage, makeSplit, splitFingerprint } from '../store/split.js';
import { type FeatureEntry, type SplitEntry, type TimeKind, writeStoreIndex } from '../store/store-index.js';
import type { ShardPlan } from '../store/shard-writer.js';
import { Vocabulary } from '../store/vocabulary.js';
import { writeCounts } from './count-items.js';
import type { Dictionary } from './dictionary.js';
import type { WrittenEvents } from './write-events.js';

const SPLIT_FILE = 'split.safetensors';

export interface SplitOptions {
  readonly folder: string;
  /** Written shards, sealed or not: sealing does not change times. */
  readonly shards: readonly ShardPlan[];
  /** Events of each user. */
  readonly lengths: Int32Array;
  readonly userIds: Dictionary;
  readonly timeKind: TimeKind;
  readonly rule: SplitRule;
}

export function checkedSplit({ folder, shards, lengths, userIds, timeKind, rule }: SplitOptions): Split {
  const times = timeKind === 'order' ? () => undefined : sequentialTimes(folder, shards, lengths);
  const vocabulary = new Vocabulary(folder, userIds.entry);
  const split = makeSplit(rule, {
    lengths,
    eventsBefore: (user, time) => lowerBound(times(user) ?? new Float64Array(0), time),
    originalUser: user => vocabulary.original(user),
  });
  checkLeakage({ rule, split, lengths, times });
  return split;
}

export interface FinishOptions {
  readonly folder: string;
  readonly written: WrittenEvents;
  readonly lengths: Int32Array;
  readonly userIds: Dictionary;
  readonly itemIds: Dictionary;
  /** Size of the catalogue. */
  readonly items: number;
  readonly timeKind: TimeKind;
  readonly split: Split;
  readonly features: FeatureEntry[];
}

export function finishStore(options: FinishOptions): void {
  const { folder, written, lengths, userIds, itemIds, split } = options;
  const content = [itemIds.content, userIds.content, ...written.content];
  const fingerprint = splitFingerprint({ split, lengths, items: options.items, content });
  writeStoreIndex(folder, {
    format: 'turbogr-store',
    version: 2,
    users: lengths.length,
    items: options.items,
    events: written.shards.reduce((n, shard) => n + shard.events, 0),
    order: 'user, time, input order',
    time: { kind: options.timeKind },
    columns: written.columns,
    action: written.action,
    shards: written.shards,
    vocabulary: { user: userIds.entry, item: itemIds.entry },
    split: writeSplit(folder, { split, lengths, fingerprint }),
    counts: writeCounts({ folder, shards: written.shards, lengths, split, items: itemIds.entry.size }),
    features: options.features,
  });
}

/** A user's times as stored, with one shard in memory at a time: call in ascending order of users. */
function sequentialTimes(
  folder: string,
  shards: readonly ShardPlan[],
  lengths: Int32Array,
): (user: number) => Float64Array {
  let shard: ShardPlan | undefined;
  let times = new Float64Array(0);
  let user = 0;
  let start = 0;
  return wanted => {
    if (!shard || wanted < user || wanted >= shard.firstUser + shard.users) {
      shard = shards.find(({ firstUser, users }) => wanted >= firstUser && wanted < firstUser + users);
      if (!shard) throw new RangeError(`no shard holds user ${wanted}`);
      const file = new SafetensorsFile(join(folder, shard.file));
      const stored = file.read('time', 'I64');
      file.close();
      times = new Float64Array(stored.length);
      copyTimes(new Int32Array(stored.buffer), 0, stored.length, times, 0);
      user = shard.firstUser;
      start = 0;
    }
    for (; user < wanted; user++) start += lengths[user] ?? 0;
    return times.subarray(start, start + (lengths[wanted] ?? 0));
  };
}

function writeSplit(
  folder: string,
  { split, lengths, fingerprint }: { split: Split; lengths: Int32Array; fingerprint: string },
): SplitEntry {
  const { kind, trainEnd, validationEnd } = split;
  const shape = [lengths.length];
  writeSafetensors(join(folder, SPLIT_FILE), {
    length: { dtype: 'I32', shape, data: lengths },
    train_end: { dtype: 'I32', shape, data: trainEnd },
    validation_end: { dtype: 'I32', shape, data: validationEnd },
  });
  let train = 0;
  let validation = 0;
  let all = 0;
  for (let u = 0; u < lengths.length; u++) {
    train += trainEnd[u] ?? 0;
    validation += (validationEnd[u] ?? 0) - (trainEnd[u] ?? 0);
    all += lengths[u] ?? 0;
  }
  const test = all - train - validation;
  return { ...fileEntry(folder, SPLIT_FILE), kind, fingerprint, train, validation, test };
}

/** Number of ascending values below the limit. */
function lowerBound(values: Float64Array, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
