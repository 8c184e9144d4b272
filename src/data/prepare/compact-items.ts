// The item dictionary when the originals are integers in a compact range: counted, ranked and looked up in arrays over
// that range. DuckDB would group and join by hashing, out of core (60 M events, 19 M items: 10 s and 14 s more).

import type { Engine } from './engine.js';
import { int32Column } from './engine.js';
import { VocabularyWriter } from '../store/vocabulary-writer.js';
import type { Dictionary } from './dictionary.js';

export interface IntegerRange {
  readonly first: number;
  readonly length: number;
}

/** 128 MB of Int32: KuaiRand-27K's 32,038,725 videos fit. */
export const COMPACT_RANGE = 2 ** 25;

/** Bytes of counts, dense ids and ranking together, per element of the range. */
const BYTES_PER_ELEMENT = 12;
const PIECE = 1 << 16;

export interface CompactItemsOptions {
  readonly folder: string;
  readonly range: IntegerRange;
  /** Queries whose single column is the place of an item in the range: one row an event, and one row a listed item. */
  readonly events: string;
  readonly listed: string | undefined;
}

export async function compactItems(engine: Engine, options: CompactItemsOptions): Promise<Dictionary> {
  const { folder, range, events, listed } = options;
  await engine.yieldMemory(range.length * BYTES_PER_ELEMENT);
  /** 0 for an item that is only listed, -1 for a number that is no item. */
  const counts = new Int32Array(range.length).fill(-1);
  await engine.stream(events, chunk => {
    const places = int32Column(chunk, 0);
    for (let i = 0; i < places.length; i++) {
      const place = places[i] ?? 0;
      counts[place] = Math.max(0, counts[place] ?? 0) + 1;
    }
  });
  if (listed !== undefined) {
    await engine.stream(listed, chunk => {
      for (const place of int32Column(chunk, 0)) counts[place] = Math.max(0, counts[place] ?? 0);
    });
  }
  const { dense, byRank, seen } = rank(counts);
  const writer = new VocabularyWriter(folder, {
    file: 'items.safetensors',
    kind: 'integer',
    order: 'descending count, then ascending value',
    size: byRank.length,
    textBytes: 0,
  });
  for (let from = 0; from < byRank.length; from += PIECE) {
    const places = byRank.subarray(from, from + PIECE);
    writer.addIntegers(
      int64(places, place => range.first + place),
      int64(places, place => counts[place] ?? 0),
    );
  }
  const piece = new Int32Array(PIECE);
  let held = 0;
  for (let place = 0; place < dense.length; place++) {
    const id = dense[place] ?? -1;
    if (id >= 0) piece[held++] = id;
    if (held === PIECE || place === dense.length - 1) {
      writer.addOrder(piece.subarray(0, held));
      held = 0;
    }
  }
  return { ...writer.finish(), seen, table: { first: range.first, dense } };
}

/** Counts from here on are too many to keep a bucket for each, and too few to matter: they are compared. */
const BUCKETS = 1 << 16;

/** Dense ids by descending count, then ascending place: a counting sort, except for the few largest counts. */
export function rank(counts: Int32Array): { dense: Int32Array; byRank: Int32Array; seen: number } {
  const next = new Int32Array(BUCKETS);
  const largest: number[] = [];
  for (let place = 0; place < counts.length; place++) {
    const n = counts[place] ?? -1;
    if (n >= BUCKETS) largest.push(place);
    else if (n >= 0) next[n] = (next[n] ?? 0) + 1;
  }
  const unseen = next[0] ?? 0;
  let items = largest.length;
  for (let n = BUCKETS - 1; n >= 0; n--) {
    const many = next[n] ?? 0;
    next[n] = items;
    items += many;
  }

  const dense = new Int32Array(counts.length).fill(-1);
  const byRank = new Int32Array(items);
  const give = (place: number, id: number): void => {
    dense[place] = id;
    byRank[id] = place;
  };
  largest.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b).forEach(give);
  for (let place = 0; place < counts.length; place++) {
    const n = counts[place] ?? -1;
    if (n < 0 || n >= BUCKETS) continue;
    const id = next[n] ?? 0;
    next[n] = id + 1;
    give(place, id);
  }
  return { dense, byRank, seen: items - unseen };
}

/** i64 values of a function, written as halves: a BigInt each would take longer than everything else here. */
function int64(places: Int32Array, value: (place: number) => number): BigInt64Array {
  const halves = new Int32Array(2 * places.length);
  for (let i = 0; i < places.length; i++) {
    const v = value(places[i] ?? 0);
    halves[2 * i] = v;
    halves[2 * i + 1] = Math.floor(v / 2 ** 32);
  }
  return new BigInt64Array(halves.buffer);
}
