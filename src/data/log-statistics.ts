// Statistics of a log for the rules that choose its settings.

import type { LogStatistics } from '../config/log-statistics.js';
import type { SequenceSource } from './sequence-source.js';

export function logStatistics(source: SequenceSource): LogStatistics {
  const { trainEnd } = source.split;
  const sorted = Int32Array.from(trainEnd).sort();
  const events = trainEnd.reduce((sum, end) => sum + end, 0);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return {
    users: source.users,
    items: source.items,
    events,
    hasTime: source.hasTime,
    length: { mean: events / Math.max(1, source.users), median: at(0.5), p90: at(0.9), max: at(1) },
    validation: trainEnd.reduce((sum, _, user) => sum + (hasHeldOut(source, user) ? 1 : 0), 0),
    repeats: () => repeatShare(source),
    pairsWithin: maxLength => trainEnd.reduce((sum, end) => sum + Math.min(maxLength, Math.max(0, end - 1)), 0),
  };
}

function hasHeldOut({ split }: SequenceSource, user: number): boolean {
  return split.validationEnd[user]! > Math.max(1, split.trainEnd[user]!);
}

/** Each user's first validation event is a target; the last training event where the log has no validation events. */
function repeatShare(source: SequenceSource): number {
  const { trainEnd } = source.split;
  const isHeldOut = trainEnd.some((_, user) => hasHeldOut(source, user));
  let [seen, repeated] = [0, 0];
  for (let user = 0; user < source.users; user++) {
    if (isHeldOut && !hasHeldOut(source, user)) continue;
    const target = isHeldOut ? Math.max(1, trainEnd[user]!) : trainEnd[user]! - 1;
    if (target < 1) continue;
    const item = new Int32Array(target + 1);
    source.read(user, 0, target + 1, { item }, 0);
    seen++;
    if (item.indexOf(item[target]!) < target) repeated++;
  }
  return repeated / Math.max(1, seen);
}
