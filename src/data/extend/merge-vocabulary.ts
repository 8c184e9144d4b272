// Merges the ids of a store and of newer events: existing dense ids are kept, new originals are appended in the order of the
// newer store.

import { type Vocabulary, compareTexts } from '../store/vocabulary.js';
import type { VocabularyEntry } from '../store/store-index.js';
import { VocabularyWriter } from '../store/vocabulary-writer.js';

export interface MergedIds {
  /** Ids that the base has. */
  readonly known: number;
  readonly size: number;
  /** Merged id of each id of the newer events. */
  readonly ofNewer: Int32Array;
  original(id: number): string;
}

export function mergeIds(base: Vocabulary, newer: Vocabulary): MergedIds {
  const added: number[] = [];
  const ofNewer = Int32Array.from({ length: newer.size }, (_, id) => {
    const known = base.dense(newer.original(id));
    if (known !== undefined) return known;
    added.push(id);
    return base.size + added.length - 1;
  });
  return {
    known: base.size,
    size: base.size + added.length,
    ofNewer,
    original: id => (id < base.size ? base.original(id) : newer.original(added[id - base.size]!)),
  };
}

export interface MergedVocabulary {
  entry: VocabularyEntry;
  /** SHA-256 of the values in dense order. */
  content: string;
  /** Ids that occur in an event. */
  seen: number;
}

/** `counts`: events of each merged id. */
export function writeMergedIds(
  folder: string,
  { file, kind }: Pick<VocabularyEntry, 'file' | 'kind'>,
  { ids, counts }: { ids: MergedIds; counts: ArrayLike<number> },
): MergedVocabulary {
  const originals = Array.from({ length: ids.size }, (_, id) => ids.original(id));
  const integers = kind === 'integer' && originals.slice(ids.known).every(isWholeNumber);
  const bigCounts = BigInt64Array.from(originals, (_, id) => BigInt(counts[id] ?? 0));
  const order = Int32Array.from({ length: ids.size }, (_, id) => id);
  const shape = { file, order: 'earlier ids, then new ones', size: ids.size } as const;
  let writer: VocabularyWriter;
  if (integers) {
    const values = BigInt64Array.from(originals, text => BigInt(text));
    writer = new VocabularyWriter(folder, { ...shape, kind: 'integer', textBytes: 0 });
    writer.addIntegers(values, bigCounts);
    order.sort((a, b) => (values[a]! < values[b]! ? -1 : values[a]! > values[b]! ? 1 : 0));
  } else {
    const texts = originals.map(text => Buffer.from(text));
    const textBytes = texts.reduce((sum, { length }) => sum + length, 0);
    writer = new VocabularyWriter(folder, { ...shape, kind: 'text', textBytes });
    writer.addTexts(texts, bigCounts);
    order.sort((a, b) => compareTexts(texts[a]!, texts[b]!));
  }
  writer.addOrder(order);
  return { ...writer.finish(), seen: bigCounts.reduce((sum, count) => sum + (count > 0n ? 1 : 0), 0) };
}

/** As an integer vocabulary writes it: '7', never '007' or '+7', within 64 bits. */
function isWholeNumber(text: string): boolean {
  return /^(0|-?[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}
