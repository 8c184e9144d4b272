// The events that may be used when a part is evaluated: train for validation, train and validation for test, everything when
// recommending.

import type { SequenceSource } from '../data/sequence-source.js';

/** What is predicted: a part of the split, or the future. */
export type Ahead = 'validation' | 'test' | 'future';

function knownEnds(source: SequenceSource, ahead: Ahead): Int32Array {
  const { trainEnd, validationEnd } = source.split;
  return { validation: trainEnd, test: validationEnd, future: source.lengths }[ahead];
}

/** Known items of every user, oldest first. A yielded array is valid until the next one. */
export function* knownHistories(source: SequenceSource, ahead: Ahead): Generator<Int32Array> {
  const ends = knownEnds(source, ahead);
  const item = new Int32Array(ends.reduce((most, end) => Math.max(most, end), 0));
  for (let user = 0; user < source.users; user++) {
    source.read(user, 0, ends[user]!, { item }, 0);
    yield item.subarray(0, ends[user]);
  }
}

/** [V] known events of each item. */
export function countItems(source: SequenceSource, ahead: Ahead): Int32Array {
  const stored = ahead === 'future' ? undefined : source.itemCounts?.(ahead);
  if (stored) return stored;
  const counts = new Int32Array(source.items);
  for (const history of knownHistories(source, ahead)) for (const item of history) counts[item]!++;
  return counts;
}

/** [V] events of each item among the newest `share` of all known events; undefined if the log has no times. */
export function countRecentItems(source: SequenceSource, ahead: Ahead, share: number): Int32Array | undefined {
  if (!source.hasTime) return undefined;
  const ends = knownEnds(source, ahead);
  const total = ends.reduce((sum, end) => sum + end, 0);
  const longest = ends.reduce((most, end) => Math.max(most, end), 0);
  const item = new Int32Array(longest);
  const time = new Float64Array(longest);
  const times = new Float64Array(total);
  for (let user = 0, at = 0; user < source.users; at += ends[user++]!) {
    source.read(user, 0, ends[user]!, { item, time }, 0);
    times.set(time.subarray(0, ends[user]), at);
  }
  times.sort();
  const since = times[Math.floor(total * (1 - share))] ?? 0;
  const counts = new Int32Array(source.items);
  for (let user = 0; user < source.users; user++) {
    source.read(user, 0, ends[user]!, { item, time }, 0);
    for (let i = ends[user]! - 1; i >= 0 && time[i]! >= since; i--) counts[item[i]!]!++;
  }
  return counts;
}

/** Hashes ids to 32 bits (the finaliser of MurmurHash3): an arbitrary order of items. */
export function scatter(id: number): number {
  let h = id ^ 0x9e3779b9;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Items by descending count. Ids are numbered by the counts of the whole log, including held-out events, so ordering ties by id
 * would leak the targets: ties are ordered by a hash of the id instead.
 */
export function byCount(counts: ArrayLike<number>): Int32Array {
  const order = Int32Array.from({ length: counts.length }, (_, item) => item);
  return order.sort((a, b) => counts[b]! - counts[a]! || scatter(a) - scatter(b) || a - b);
}
