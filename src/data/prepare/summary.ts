// Statistics of a finished store for its report: histogram of lengths, most frequent items, time span.

import { SequenceStore } from '../store/sequence-store.js';
import type { PrepareReport } from './options.js';

type Summary = Pick<PrepareReport, 'users' | 'items' | 'events' | 'time' | 'lengths' | 'topItems' | 'split'>;

const TOP_ITEMS = 10;

export function summarize(folder: string, timeSpan: { first: number | null; last: number | null }): Summary {
  const store = SequenceStore.open(folder);
  const { index, users, items, events } = store;
  const { kind, train, validation, test, fingerprint } = index.split;
  return {
    users,
    items,
    events,
    time: { kind: index.time.kind, ...timeSpan },
    lengths: describeLengths(store.lengths),
    topItems: store.itemVocabulary
      .head(TOP_ITEMS)
      .map(({ original, count }) => ({ id: original, events: count, share: count / events })),
    split: { kind, train, validation, test, fingerprint },
  };
}

/** Histogram bins double: 1, 2..3, 4..7, ... */
export function describeLengths(lengths: Int32Array): PrepareReport['lengths'] {
  const sorted = Int32Array.from(lengths).sort();
  const n = sorted.length;
  const quantile = (q: number): number => sorted[Math.min(n - 1, Math.floor(q * n))] ?? 0;
  const bins: number[] = [];
  let total = 0;
  for (const length of sorted) {
    total += length;
    const bin = 31 - Math.clz32(Math.max(1, length));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const first = bins.findIndex(users => users > 0);
  return {
    min: sorted[0] ?? 0,
    median: quantile(0.5),
    mean: n > 0 ? total / n : 0,
    p90: quantile(0.9),
    p99: quantile(0.99),
    max: sorted[n - 1] ?? 0,
    histogram: Array.from({ length: Math.max(0, bins.length - first) }, (_, k) => {
      const bin = first + k;
      return { from: 2 ** bin, to: 2 ** (bin + 1) - 1, users: bins[bin] ?? 0 };
    }),
  };
}
