// Statistics of a run's data: lengths of histories and popularity of items.

import { countItems } from '../eval/known-events.js';
import { openStore } from '../jobs/open-run.js';
import type { RunFolder } from '../train/run-folder.js';

export interface StoreFacts {
  users: number;
  items: number;
  events: number;
  /** Users with `from` to `to` events. */
  lengths: { from: number; to: number; users: number }[];
  /** Share of all known events that the most popular `items` of the catalogue have. */
  popularity: { items: number; events: number }[];
  medianLength: number;
  /** Items without known events. */
  unseenItems: number;
}

const POPULARITY_POINTS = 100;

export function storeFacts(run: RunFolder): StoreFacts {
  const source = openStore(run);
  const lengths = Int32Array.from(source.lengths).sort();
  const counts = Int32Array.from(countItems(source, 'test')).sort().toReversed();
  const known = counts.reduce((sum, count) => sum + count, 0);
  return {
    users: source.users,
    items: source.items,
    events: source.events,
    lengths: histogram(lengths),
    popularity: cumulated(counts, known),
    medianLength: lengths[lengths.length >> 1] ?? 0,
    unseenItems: counts.reduce((sum, count) => sum + (count === 0 ? 1 : 0), 0),
  };
}

/** Bins of half a power of two: 1, 2, 3, 4-5, 6-7, 8-11, 12-15, ... */
function histogram(sorted: Int32Array): StoreFacts['lengths'] {
  const edges = [1, 2, 3];
  for (let power = 4; power <= (sorted.at(-1) ?? 0); power *= 2) edges.push(power, power * 1.5);
  const bins = edges.map((from, i) => ({ from, to: (edges[i + 1] ?? 2 * from) - 1, users: 0 }));
  let bin = 0;
  for (const length of sorted) {
    while (bin + 1 < bins.length && length > bins[bin]!.to) bin++;
    bins[bin]!.users++;
  }
  const first = bins.findIndex(({ users }) => users > 0);
  const last = bins.findLastIndex(({ users }) => users > 0);
  return first < 0 ? [] : bins.slice(first, last + 1);
}

function cumulated(counts: Int32Array, total: number): StoreFacts['popularity'] {
  const points: StoreFacts['popularity'] = [{ items: 0, events: 0 }];
  let sum = 0;
  let next = 1;
  counts.forEach((count, i) => {
    sum += count;
    if (i + 1 < (next * counts.length) / POPULARITY_POINTS) return;
    next = Math.floor(((i + 1) * POPULARITY_POINTS) / counts.length) + 1;
    points.push({ items: (i + 1) / counts.length, events: total === 0 ? 0 : sum / total });
  });
  return points;
}
