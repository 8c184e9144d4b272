// Item dictionary for integer ids in a compact range: counted, ranked and looked up in arrays over that range. DuckDB would
// group and join by hashing, out of core (60 M events, 19 M items: 10 s and 14 s more).

import { VocabularyWriter } from '../store/vocabulary-writer.js';
import type { Field } from './columns.js';
import { type Dictionary, LISTED_ITEMS } from './dictionary.js';
import { type Engine, count, int32Column } from './engine.js';
import { EVENTS, ofEvent } from './stage.js';

export interface CompactRange {
  readonly first: number;
  /** Shared memory; for each integer from `first` on: LISTED or 0. */
  readonly listed: Int32Array;
}

/** 128 MB of Int32: KuaiRand-27K's 32,038,725 videos fit. */
const LONGEST_RANGE = 2 ** 25;

const PIECE = 1 << 16;

/** Count of a catalogue item without events; 0 marks a number that is not an item. */
const LISTED = -1;

/** The range of the items, including LISTED_ITEMS, if they are integers and the range is compact. */
export async function compactRange(engine: Engine, item: Field, listed: boolean): Promise<CompactRange | undefined> {
  if (item.sqlType !== 'BIGINT') return undefined;
  const value = ofEvent(item.name);
  const values = `SELECT min(${value}) AS low, max(${value}) AS high FROM ${EVENTS}`;
  const listedValues = listed ? ` UNION ALL SELECT min(value), max(value) FROM ${LISTED_ITEMS}` : '';
  const row = await engine.row(`SELECT min(low) AS low, max(high) AS high FROM (${values}${listedValues})`);
  const first = count(row, 'low');
  const last = count(row, 'high');
  const length = last - first + 1;
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || length > LONGEST_RANGE) return undefined;

  const marks = new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));
  if (listed) {
    await engine.stream(`SELECT (value - ${first})::INTEGER FROM ${LISTED_ITEMS}`, chunk => {
      for (const place of int32Column(chunk, 0)) marks[place] = LISTED;
    });
  }
  return { first, listed: marks };
}

export interface RankedItems {
  readonly first: number;
  readonly counts: Int32Array;
  readonly byRank: Int32Array;
  /** Dense id of each number in the range, -1 if it is not an item; shared memory. */
  readonly dense: Int32Array;
  readonly seen: number;
}

/** `tallies`: partial event counts per number in the range; the first becomes their sum. */
export function rankItems({ first, listed }: CompactRange, tallies: readonly Int32Array[]): RankedItems {
  const [counts = new Int32Array(listed.length), ...others] = tallies;
  for (let place = 0; place < counts.length; place++) {
    let n = counts[place] ?? 0;
    for (const tally of others) n += tally[place] ?? 0;
    counts[place] = n > 0 ? n : (listed[place] ?? 0);
  }
  const { byRank, seen } = rank(counts);
  return { first, counts, byRank, seen, dense: invert(byRank, listed) };
}

export function writeItems(folder: string, { first, counts, byRank, dense, seen }: RankedItems): Dictionary {
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
      int64(places, place => first + place),
      int64(places, place => Math.max(0, counts[place] ?? 0)),
    );
  }
  const piece = new Int32Array(PIECE);
  let filled = 0;
  for (let place = 0; place < dense.length; place++) {
    const id = dense[place] ?? -1;
    if (id >= 0) piece[filled++] = id;
    if (filled === PIECE || place === dense.length - 1) {
      writer.addOrder(piece.subarray(0, filled));
      filled = 0;
    }
  }
  return { ...writer.finish(), seen };
}

/** Items with counts from here on are few and are sorted by comparison instead of buckets. */
const BUCKETS = 1 << 16;

/** Numbers by descending count, then ascending, merely listed ones last: a counting sort, except for the few largest counts. */
export function rank(counts: Int32Array): { byRank: Int32Array; seen: number } {
  const next = new Int32Array(BUCKETS);
  const largest: number[] = [];
  for (let place = 0; place < counts.length; place++) {
    const n = counts[place] ?? 0;
    if (n >= BUCKETS) largest.push(place);
    else if (n !== 0) next[bucket(n)] = (next[bucket(n)] ?? 0) + 1;
  }
  const unseen = next[bucket(LISTED)] ?? 0;
  let items = largest.length;
  for (let n = BUCKETS - 1; n >= 0; n--) {
    const many = next[n] ?? 0;
    next[n] = items;
    items += many;
  }

  const byRank = new Int32Array(items);
  byRank.set(largest.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0) || a - b));
  for (let place = 0; place < counts.length; place++) {
    const n = counts[place] ?? 0;
    if (n === 0 || n >= BUCKETS) continue;
    const id = next[bucket(n)] ?? 0;
    next[bucket(n)] = id + 1;
    byRank[id] = place;
  }
  return { byRank, seen: items - unseen };
}

function bucket(count: number): number {
  return count === LISTED ? 0 : count;
}

/** Dense id of every number in the range, -1 if it is not an item; overwrites `into`. */
export function invert(byRank: Int32Array, into: Int32Array): Int32Array {
  into.fill(-1);
  for (let id = 0; id < byRank.length; id++) into[byRank[id] ?? 0] = id;
  return into;
}

/** i64 values of a function, written as 32-bit halves: BigInts would take longer than everything else here. */
function int64(places: Int32Array, value: (place: number) => number): BigInt64Array {
  const halves = new Int32Array(2 * places.length);
  for (let i = 0; i < places.length; i++) {
    const v = value(places[i] ?? 0);
    halves[2 * i] = v;
    halves[2 * i + 1] = Math.floor(v / 2 ** 32);
  }
  return new BigInt64Array(halves.buffer);
}
