// The moment to recommend for. A model that reads times knows the gaps that occur in its log; a longer one lies in time
// buckets that no training step has touched. So "now", long after an old log ended, counts as the longest gap that the
// log has between two events of a user.

import type { SequenceStore } from '../data/store/sequence-store.js';
import type { TimeKind } from '../data/store/store-index.js';

const PER_MILLISECOND = { s: 1e-3, ms: 1, us: 1e3, ns: 1e6 };

/** The longest time between neighbouring training events of a user, in the unit of the log. */
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

/** Now in the unit of the log, kept within [last, last + gap]; `last` for a log that has an order and no times. */
export function presentMoment(kind: TimeKind, last: number, gap: number): number {
  const now = currentTime(kind);
  return now === undefined ? last : Math.min(Math.max(now, last), last + gap);
}

/** The clock in the unit of the log; undefined for a log that has an order and no times. */
export function currentTime(kind: TimeKind): number | undefined {
  return kind === 'order' ? undefined : Math.floor(Date.now() * PER_MILLISECOND[kind]);
}
