// The time to recommend for. A model with time bias has only seen gaps that occur in its log; longer ones are in untrained time
// buckets. So "now", long after the end of an old log, is limited to the longest gap between two events of a user in the log.

import type { SequenceStore } from '../data/store/sequence-store.js';
import type { TimeKind } from '../data/store/store-index.js';

const PER_MILLISECOND = { s: 1e-3, ms: 1, us: 1e3, ns: 1e6 };

/** The longest gap between consecutive training events of a user, in the unit of the log. */
export function longestGap(source: SequenceStore): number {
  if (!source.hasTime) return 0;
  const { trainEnd } = source.split;
  const longest = trainEnd.reduce((most, end) => Math.max(most, end), 0);
  const into = { item: new Int32Array(longest), time: new Float64Array(longest) };
  let gap = 0;
  for (let user = 0; user < source.users; user++) {
    source.read(user, 0, trainEnd[user]!, into, 0);
    for (let i = 1; i < trainEnd[user]!; i++) gap = Math.max(gap, into.time[i]! - into.time[i - 1]!);
  }
  return gap;
}

/** Now in the unit of the log, clamped to [last, last + gap]; `last` for a log without times. */
export function presentMoment(kind: TimeKind, last: number, gap: number): number {
  const now = currentTime(kind);
  return now === undefined ? last : Math.min(Math.max(now, last), last + gap);
}

/** The current time in the unit of the log; undefined for a log without times. */
export function currentTime(kind: TimeKind): number | undefined {
  return kind === 'order' ? undefined : Math.floor(Date.now() * PER_MILLISECOND[kind]);
}
